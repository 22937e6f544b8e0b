// SPDX-License-Identifier: Apache-2.0
#include <troupe/apps/trace/top_rows.hpp>

#include <troupe/apps/option_checks.hpp>
#include <troupe/apps/trace/traced_run.hpp>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>

#include <algorithm>
#include <numeric>

namespace troupe::apps {

std::string top_rows::rest() const {
  return left_out == 0 ? ""
                       : "and " + std::to_string(left_out) + " more, together "
                           + time_text(left_out_ns) + "\n";
}

top_rows choose_rows(std::span<const double> ns,
                     std::optional<std::size_t> top) {
  constexpr double enough = 0.99;
  std::vector<std::size_t> longest_first(ns.size());
  std::iota(longest_first.begin(), longest_first.end(), std::size_t{0});
  std::ranges::stable_sort(longest_first, std::ranges::greater{},
                           [&](std::size_t i) { return ns[i]; });
  const auto all_ns = std::accumulate(ns.begin(), ns.end(), 0.0);
  const auto may_be_left = (1 - enough) * all_ns;
  top_rows rows{std::vector<bool>(ns.size()), ns.size(), all_ns};
  for (auto i : longest_first) {
    const auto count = ns.size() - rows.left_out;
    if (top ? count == *top : rows.left_out_ns <= may_be_left)
      break;
    rows.shown[i] = true;
    --rows.left_out;
    rows.left_out_ns -= ns[i];
  }
  rows.left_out_ns = std::max(rows.left_out_ns, 0.0);
  return rows;
}

void add_top_option(CLI::App& command, std::optional<std::size_t>& top) {
  command
    .add_option("--top", top,
                "list the N that take longest (default: those that make up "
                "99 % of the time)")
    ->check(positive());
}

} // namespace troupe::apps
