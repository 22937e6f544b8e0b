// SPDX-License-Identifier: Apache-2.0
#include <troupe/trace/analysis/cost_table.hpp>

#include <troupe/trace/analysis/readiness.hpp>

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>

namespace troupe::trace {

namespace {

using cost_key = std::tuple<std::string_view, std::string_view, std::uint32_t>;

cost_key key_of(const handle_info& h) {
  return {h.type, h.shape, h.device};
}

/// Bytes that ops allocate, by op, in the steps that count.
std::vector<double> allocated_bytes(std::span<const process_trace> parts,
                                    std::size_t handles, const timeline& all) {
  std::vector<double> bytes(handles);
  for (const auto& part : parts)
    for (const auto& e : part.events)
      if (e.kind == event_kind::allocation && e.from < handles
          && all.find_op_step(e.step))
        bytes[e.from] += static_cast<double>(e.amount);
  return bytes;
}

} // namespace

cost_table cost_table::measure(std::span<const process_trace> parts,
                               const timeline& all, const op_graph& graph) {
  struct sums {
    std::vector<double> ns;
    double bytes = 0;
  };
  const auto& handles = graph.graph().handles;
  std::map<cost_key, sums> found;
  for (const auto& r : all.runs())
    if (all.find_op_step(r.step))
      found[key_of(handles[r.op])].ns.push_back(
        static_cast<double>(own_time(all, graph, r)));
  const auto bytes = allocated_bytes(parts, handles.size(), all);
  for (handle_id op = 0; op < handles.size(); ++op)
    if (bytes[op] > 0)
      if (const auto at = found.find(key_of(handles[op])); at != found.end())
        at->second.bytes += bytes[op];

  std::vector<std::pair<double, const std::pair<const cost_key, sums>*>> order;
  for (const auto& entry : found)
    order.emplace_back(
      std::accumulate(entry.second.ns.begin(), entry.second.ns.end(), 0.0),
      &entry);
  std::ranges::stable_sort(order, std::ranges::greater{},
                           [](const auto& o) { return o.first; });
  cost_table table;
  std::map<cost_key, std::size_t> row_of;
  for (const auto& [total, entry] : order) {
    const auto& [key, s] = *entry;
    const auto& [type, shapes, device] = key;
    row_of[key] = table.rows_.size();
    const auto& devices = graph.graph().devices;
    table.rows_.push_back({std::string{type}, std::string{shapes},
                           device < devices.size() ? devices[device] : "?",
                           s.ns.size(), spread_of(s.ns),
                           s.bytes / static_cast<double>(s.ns.size())});
  }
  table.row_of_.assign(handles.size(), table.rows_.size());
  for (handle_id op = 0; op < handles.size(); ++op)
    if (handles[op].is_op)
      if (const auto at = row_of.find(key_of(handles[op])); at != row_of.end())
        table.row_of_[op] = at->second;
  return table;
}

const op_cost* cost_table::find(handle_id op) const {
  return op < row_of_.size() && row_of_[op] < rows_.size() ? &rows_[row_of_[op]]
                                                           : nullptr;
}

} // namespace troupe::trace
