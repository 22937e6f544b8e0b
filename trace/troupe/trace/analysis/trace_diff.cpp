// SPDX-License-Identifier: Apache-2.0
#include <troupe/trace/analysis/trace_diff.hpp>

#include <troupe/trace/analysis/cost_table.hpp>
#include <troupe/trace/analysis/readiness.hpp>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string_view>
#include <utility>

namespace troupe::trace {

std::string_view to_string(difference d) noexcept {
  switch (d) {
  case difference::none: return "no difference";
  case difference::faster: return "faster";
  case difference::slower: return "slower";
  case difference::unknown: return "not comparable";
  case difference::only_a: return "only in A";
  case difference::only_b: return "only in B";
  }
  return "?";
}

namespace {

constexpr double most_p = 0.01;

/// A time per step, by name.
using times_by_name = std::map<std::string_view, std::vector<double>>;

times_by_name times_of(const timeline& all, const op_graph& graph, diff_by by) {
  times_by_name times;
  std::map<std::string_view, double> of_step;
  for (const auto& step : all.op_steps()) {
    of_step.clear();
    for (auto i : all.runs_of(step.step)) {
      const auto& r = all.runs()[i];
      const auto& h = graph.graph().handles[r.op];
      of_step[by == diff_by::type ? h.type : h.name] +=
        static_cast<double>(own_time(all, graph, r));
    }
    for (const auto& [name, ns] : of_step)
      times[name].push_back(ns);
  }
  return times;
}

diff_row row_of(std::string_view name, const std::vector<double>& a,
                const std::vector<double>& b) {
  diff_row row{std::string{name}, a.size(), b.size(), spread_of(a),
               spread_of(b)};
  if (a.empty() != b.empty())
    row.found = b.empty() ? difference::only_a : difference::only_b;
  if (a.size() < least_steps || b.size() < least_steps)
    return row;
  row.p = rank_test(a, b);
  row.found = difference::none;
  if (row.p >= most_p)
    return row;
  if (row.b_ns.three_quarters < row.a_ns.quarter)
    row.found = difference::faster;
  else if (row.b_ns.quarter > row.a_ns.three_quarters)
    row.found = difference::slower;
  return row;
}

/// What the ops of a graph do, on whatever devices.
std::set<cost_key> kinds_of(const op_graph& graph) {
  std::set<cost_key> kinds;
  for (handle_id op = 0; op < graph.graph().handles.size(); ++op)
    if (graph.is_op(op) && !graph.merges(op)) {
      auto key = cost_key_of(graph.graph(), op);
      key.device.clear();
      kinds.insert(std::move(key));
    }
  return kinds;
}

std::size_t count_without(const std::set<cost_key>& kinds,
                          const std::set<cost_key>& others) {
  return static_cast<std::size_t>(std::ranges::count_if(
    kinds, [&](const cost_key& k) { return !others.contains(k); }));
}

} // namespace

trace_difference compare(const timeline& a, const op_graph& graph_a,
                         const timeline& b, const op_graph& graph_b,
                         diff_by by) {
  trace_difference made;
  made.step = row_of("step time", typical_step_times(a), typical_step_times(b));
  const auto of_a = times_of(a, graph_a, by);
  const auto of_b = times_of(b, graph_b, by);
  const std::vector<double> nothing;
  for (const auto& [name, times] : of_a) {
    const auto other = of_b.find(name);
    made.rows.push_back(
      row_of(name, times, other == of_b.end() ? nothing : other->second));
  }
  for (const auto& [name, times] : of_b)
    if (!of_a.contains(name))
      made.rows.push_back(row_of(name, nothing, times));
  const auto kinds_a = kinds_of(graph_a), kinds_b = kinds_of(graph_b);
  made.kinds_only_a = count_without(kinds_a, kinds_b);
  made.kinds_only_b = count_without(kinds_b, kinds_a);
  std::ranges::stable_sort(
    made.rows, std::ranges::greater{},
    [](const diff_row& r) { return std::abs(r.b_ns.median - r.a_ns.median); });
  return made;
}

} // namespace troupe::trace
