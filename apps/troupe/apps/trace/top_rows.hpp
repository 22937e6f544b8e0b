// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace CLI {
class App;
} // namespace CLI

namespace troupe::apps {

/// Which rows of a list are printed.
struct top_rows {
  std::vector<bool> shown;  ///< of each row
  std::size_t left_out = 0; ///< how many others there are
  double left_out_ns = 0;   ///< their times together

  /// "and 12 more, together 3.4 us\n"; empty if nothing was left out.
  std::string rest() const;
};

/// Chooses the rows that take longest: together 99 % of the time of all.
///
/// @param ns of each row, in any order
/// @param top so many of them, whatever they take
top_rows choose_rows(std::span<const double> ns,
                     std::optional<std::size_t> top);

/// Adds `--top N`.
void add_top_option(CLI::App& command, std::optional<std::size_t>& top);

} // namespace troupe::apps
