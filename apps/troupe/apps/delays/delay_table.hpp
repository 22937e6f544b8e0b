// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/graph/program.hpp>
#include <troupe/trace/analysis/cost_table.hpp>

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace troupe::apps {

/// The types of all ops of a program, also of those in sub-blocks.
std::set<std::string, std::less<>> op_types_of(const graph::program& program);

/// The first output variables of all ops of a program (`op_key`), each with the
/// op's type. If several ops write a variable first, its first one counts.
std::map<std::string, std::string, std::less<>>
op_outputs_of(const graph::program& program);

/// How much longer an op takes.
struct delay {
  std::uint64_t ns = 0;
  double factor = 1; ///< times its own time
  bool is_none() const noexcept { return ns == 0 && factor == 1; }
};

/// A delay by op.
class delay_table {
public:
  /// What an entry can say.
  enum class grammar : std::uint8_t {
    times, ///< TYPE=TIME, or a file of costs (trace::cost_table)
    names, ///< NAME=TIME and NAME=xFACTOR; a name is a type or a first output
  };
  /// Reads texts such as "conv2d=100us,relu=10us,*=1us", and the names of files
  /// of costs, at most one. Units are ns, us, ms and s. `*` means all types
  /// that are not named; without it they take no time. A factor is at least 1,
  /// such as "conv2d_3.tmp_0=x1.2". Throws usage_error naming the entry that
  /// cannot be read, and error for a file that cannot be read.
  /// @param option where the texts come from, for errors
  static delay_table read(const std::vector<std::string>& texts_or_files,
                          grammar allowed = grammar::times,
                          std::string option = "--delay");

  /// Throws usage_error for a name that is not one of `op_types`, and if there
  /// are any, none of `outputs`.
  void require_known(
    const std::set<std::string, std::less<>>& op_types,
    const std::map<std::string, std::string, std::less<>>& outputs = {}) const;

  /// Of an op of type `op_type`, if its output has no entry.
  delay of(std::string_view op_type) const;
  /// Of the op with a first output: its own entry, or that of its type.
  delay of(std::string_view op_type, std::string_view output) const;
  /// The names that have an entry.
  std::vector<std::string> names() const;
  /// True if the op's type has an entry of its own.
  bool names_type(std::string_view op_type) const {
    return delays_.contains(op_type);
  }

  /// What a file said; null without a file.
  const trace::cost_table* costs() const noexcept {
    return costs_ ? &*costs_ : nullptr;
  }

private:
  delay_table(grammar allowed, std::string option)
    : allowed_(allowed), option_(std::move(option)) {}
  void add_all(const std::string& text_or_file);
  void add_file(const std::string& file);
  void add(std::string_view entry);

  grammar allowed_;
  std::string option_;
  std::map<std::string, delay, std::less<>> delays_;
  std::optional<trace::cost_table> costs_;
};

} // namespace troupe::apps
