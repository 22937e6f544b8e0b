// SPDX-License-Identifier: Apache-2.0
#include <troupe/graph/passes/redundant_edges.hpp>

#include <troupe/graph/ssa/adjacency.hpp>
#include <troupe/graph/ssa/reachability.hpp>

#include <vector>

namespace troupe::graph {

namespace {

bool may_go(const edge& e) {
  if (e.kind == edge_kind::transfer)
    return false;
  return e.distance == 1 || (e.distance == 0 && e.kind != edge_kind::data);
}

/// Possible detours around each edge: another edge of the same handle, then any
/// chain. An edge is redundant if the chain of one of its detours exists.
struct detours {
  std::vector<order_query> queries;
  std::vector<std::size_t> edge_of_query;

  void add(std::size_t index, handle_id from, handle_id to,
           std::uint32_t distance) {
    queries.push_back({from, to, distance});
    edge_of_query.push_back(index);
  }
};

detours find_detours(const ssa_graph& g, const reachability& reach) {
  const adjacency out{g, 1};
  detours result;
  for (std::size_t i = 0; i < g.edges.size(); ++i) {
    auto& e = g.edges[i];
    if (!may_go(e))
      continue;
    for (auto& way : out[e.from]) {
      const auto same = way.to == e.to && way.distance == e.distance;
      if (same || way.distance > e.distance)
        continue;
      const auto left = e.distance - way.distance;
      if (left > 0 || reach.may_precede(way.to, e.to))
        result.add(i, way.to, e.to, left);
    }
    // The implicit edge of an op to itself also leads to the next step.
    if (e.distance == 1 && g.is_op(e.from))
      result.add(i, e.from, e.to, 0);
  }
  return result;
}

} // namespace

// All redundant edges can be removed at once: the unrolled steps have no cycle,
// so a chain that uses another redundant edge can use the chain around that
// edge instead.
ssa_graph remove_redundant_edges(ssa_graph g) {
  reachability reach{g};
  auto ways = find_detours(g, reach);
  std::vector<bool> exists(ways.queries.size(), true);
  for (auto query : reach.find_unordered(ways.queries))
    exists[query] = false;
  std::vector<bool> redundant(g.edges.size(), false);
  for (std::size_t query = 0; query < exists.size(); ++query)
    if (exists[query])
      redundant[ways.edge_of_query[query]] = true;
  std::vector<edge> kept;
  for (std::size_t i = 0; i < g.edges.size(); ++i)
    if (!redundant[i])
      kept.push_back(g.edges[i]);
  g.edges = std::move(kept);
  return g;
}

} // namespace troupe::graph
