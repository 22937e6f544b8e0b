// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/graph/program.hpp>

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace troupe::apps {

/// The types of all ops of a program, also of those in sub-blocks.
std::set<std::string, std::less<>> op_types_of(const graph::program& program);

/// A duration by op type.
class delay_table {
public:
  /// Reads texts such as "conv2d=100us,relu=10us,*=1us", and files with one
  /// such entry per line, in which `#` begins a comment. Units are ns, us, ms
  /// and s. `*` means all types that are not named; without it they take no
  /// time. Throws usage_error naming the entry that cannot be read.
  /// @param option where the texts come from, for errors
  static delay_table read(const std::vector<std::string>& texts_or_files,
                          std::string option = "--delay");

  /// Throws usage_error for a named type that is not one of `op_types`.
  void require_known(const std::set<std::string, std::less<>>& op_types) const;

  /// Nanoseconds of a kernel for `op_type`.
  std::uint64_t of(std::string_view op_type) const;

private:
  explicit delay_table(std::string option) : option_(std::move(option)) {}
  void add_all(const std::string& text_or_file);
  void add(std::string_view entry);

  std::string option_;
  std::map<std::string, std::uint64_t, std::less<>> ns_;
};

} // namespace troupe::apps
