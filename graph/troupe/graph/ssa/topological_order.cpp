// SPDX-License-Identifier: Apache-2.0
#include <troupe/graph/ssa/topological_order.hpp>

#include <algorithm>
#include <string>
#include <troupe/base/error.hpp>

namespace troupe::graph {

namespace {

// Each remaining handle waits for another remaining one, so walking backwards
// from any of them ends in a cycle.
std::vector<handle_id> find_cycle(const ssa_graph& g,
                                  const std::vector<std::size_t>& waits_for) {
  std::vector<handle_id> back(g.size(), no_handle);
  for (auto& e : g.edges)
    if (e.distance == 0 && waits_for[e.from] > 0 && waits_for[e.to] > 0)
      back[e.to] = e.from;
  auto left = std::find_if(back.begin(), back.end(),
                           [](handle_id id) { return id != no_handle; });
  std::vector<bool> seen(g.size());
  auto at = static_cast<handle_id>(left - back.begin());
  for (; !seen[at]; at = back[at])
    seen[at] = true;
  std::vector<handle_id> path{at};
  for (auto id = back[at]; id != at; id = back[id])
    path.push_back(id);
  path.push_back(at);
  std::reverse(path.begin(), path.end());
  return path;
}

[[noreturn]] void fail_with_cycle(const ssa_graph& g,
                                  const std::vector<handle_id>& path) {
  std::string text;
  for (auto id : path)
    text += (text.empty() ? "" : " -> ") + handle_name(g, id);
  throw error{errc::graph_invalid, "the graph has a cycle: " + text};
}

} // namespace

std::vector<handle_id> topological_order(const ssa_graph& g) {
  return topological_order(g, adjacency{g, 0});
}

std::vector<handle_id> topological_order(const ssa_graph& g,
                                         const adjacency& edges) {
  std::vector<std::size_t> waits_for(g.size(), 0);
  for (auto& e : g.edges)
    waits_for[e.to] += e.distance == 0;
  std::vector<handle_id> order;
  order.reserve(g.size());
  for (handle_id id = 0; id < g.size(); ++id)
    if (waits_for[id] == 0)
      order.push_back(id);
  for (std::size_t i = 0; i < order.size(); ++i)
    for (auto& next : edges[order[i]])
      if (next.distance == 0 && --waits_for[next.to] == 0)
        order.push_back(next.to);
  if (order.size() < g.size())
    fail_with_cycle(g, find_cycle(g, waits_for));
  return order;
}

} // namespace troupe::graph
