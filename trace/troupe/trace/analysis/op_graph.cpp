// SPDX-License-Identifier: Apache-2.0
#include <troupe/trace/analysis/op_graph.hpp>

#include <algorithm>
#include <map>
#include <string_view>

namespace troupe::trace {

namespace {

bool merges_values(const handle_info& h) {
  const std::string_view type = h.type;
  return h.is_op
         && (h.is_collective || type == "send" || type == "recv"
             || type.starts_with("merging_") || type.starts_with("gathered_"));
}

bool is_transfer(const handle_info& from, const handle_info& to) {
  return from.is_op && to.is_op && from.type == "send" && to.type == "recv";
}

} // namespace

op_graph::op_graph(const graph_info& graph)
  : graph_(graph), before_(graph.handles.size()),
    partners_(graph.handles.size()) {
  for (const auto& h : graph.handles)
    merges_.push_back(merges_values(h));
  find_dependencies();
  find_ranks();
}

void op_graph::find_dependencies() {
  const auto& handles = graph_.handles;
  std::vector<std::vector<dependency>> edges(handles.size());
  for (const auto& e : graph_.edges) {
    if (e.from >= handles.size() || e.to >= handles.size())
      continue;
    if (is_transfer(handles[e.from], handles[e.to]))
      partners_[e.to].push_back(e.from);
    else
      edges[e.to].push_back({e.from, e.distance});
  }
  // Walks from each op through variables to the ops before them. A variable
  // has few versions and few writers, so walks are short.
  constexpr std::size_t longest_walk = 1000; // ends a circle of variables
  std::vector<dependency> rest;
  for (handle_id op = 0; op < handles.size(); ++op) {
    if (!handles[op].is_op)
      continue;
    auto& found = before_[op];
    found.push_back({op, 1});
    rest = edges[op];
    for (std::size_t seen = 0; seen < rest.size() && seen < longest_walk;
         ++seen) {
      const auto d = rest[seen];
      if (handles[d.op].is_op)
        found.push_back(d);
      else
        for (const auto& more : edges[d.op])
          rest.push_back({more.op, d.distance + more.distance});
    }
    const auto key = [](const dependency& d) {
      return std::pair{d.op, d.distance};
    };
    std::ranges::sort(found, {}, key);
    const auto same = std::ranges::unique(found, {}, key);
    found.erase(same.begin(), same.end());
  }
}

void op_graph::find_ranks() {
  if (graph_.process_of_device.empty())
    return; // the ranks of a collective share one op
  // All devices have the same collectives in the same order.
  std::vector<std::vector<handle_id>> of_device(graph_.devices.size());
  for (handle_id id = 0; id < graph_.handles.size(); ++id)
    if (const auto& h = graph_.handles[id];
        h.is_op && h.is_collective && h.device < of_device.size())
      of_device[h.device].push_back(id);
  for (const auto& ops : of_device)
    if (ops.size() != of_device.front().size())
      return;
  if (of_device.empty())
    return;
  for (std::size_t i = 0; i < of_device.front().size(); ++i) {
    const auto& type = graph_.handles[of_device.front()[i]].type;
    if (std::ranges::any_of(of_device, [&](auto& ops) {
          return graph_.handles[ops[i]].type != type;
        }))
      continue;
    for (const auto& ops : of_device)
      for (const auto& others : of_device)
        if (&ops != &others)
          partners_[ops[i]].push_back(others[i]);
  }
}

std::span<const dependency> op_graph::before(handle_id op) const {
  return before_[op];
}

std::span<const handle_id> op_graph::partners(handle_id op) const {
  return partners_[op];
}

std::size_t op_graph::process_of(handle_id id) const {
  const auto device = graph_.handles[id].device;
  return device < graph_.process_of_device.size()
           ? graph_.process_of_device[device]
           : 0;
}

} // namespace troupe::trace
