// SPDX-License-Identifier: Apache-2.0
#include <troupe/trace/analysis/slow_ranks.hpp>

#include <troupe/trace/analysis/statistics.hpp>
#include <troupe/trace/analysis/trace_diff.hpp>

#include <algorithm>
#include <map>
#include <string_view>

namespace troupe::trace {

namespace {

constexpr double least_slow_factor = 1.1, least_slow_ns = 1e5;
constexpr double most_slow_p = 0.01;

/// The ops of a type in a rank.
struct rank_times {
  std::vector<double> ns; ///< by step
  std::size_t runs = 0;
};
using times_of_ranks = std::map<std::string_view, std::vector<rank_times>>;

times_of_ranks times_by_rank(const timeline& all, const op_graph& graph) {
  times_of_ranks found;
  const auto steps = all.op_steps();
  for (std::size_t s = 0; s < steps.size(); ++s)
    for (auto i : all.runs_of(steps[s].step)) {
      const auto& r = all.runs()[i];
      if (graph.merges(r.op))
        continue;
      auto& ranks = found[graph.graph().handles[r.op].type];
      ranks.resize(all.processes());
      auto& own = ranks[r.process];
      own.ns.resize(steps.size());
      own.ns[s] += static_cast<double>(r.done - r.begin);
      ++own.runs;
    }
  return found;
}

bool is_slower(const std::vector<double>& own,
               const std::vector<double>& others) {
  const auto a = spread_of(others), b = spread_of(own);
  return b.median >= least_slow_factor * a.median
         && b.median - a.median >= least_slow_ns && b.quarter > a.three_quarters
         && rank_test(others, own) < most_slow_p;
}

} // namespace

std::vector<slow_rank> find_slow_ranks(const timeline& all,
                                       const op_graph& graph) {
  std::vector<slow_rank> found;
  if (all.processes() < 2 || all.op_steps().size() < least_steps)
    return found;
  for (const auto& [type, ranks] : times_by_rank(all, graph)) {
    if (std::ranges::any_of(ranks, [&](const rank_times& r) {
          return r.runs != ranks.front().runs;
        }))
      continue;
    for (std::size_t p = 0; p < ranks.size(); ++p) {
      std::vector<double> others;
      for (std::size_t o = 0; o < ranks.size(); ++o)
        if (o != p)
          others.insert(others.end(), ranks[o].ns.begin(), ranks[o].ns.end());
      if (is_slower(ranks[p].ns, others))
        found.push_back({static_cast<std::uint16_t>(p), std::string{type},
                         spread_of(ranks[p].ns).median,
                         spread_of(others).median});
    }
  }
  std::ranges::stable_sort(
    found, std::ranges::greater{},
    [](const slow_rank& r) { return r.ns - r.others_ns; });
  return found;
}

} // namespace troupe::trace
