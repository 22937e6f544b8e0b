// SPDX-License-Identifier: Apache-2.0
#include <troupe/graph/op_order.hpp>

#include <troupe/graph/passes/redundant_edges.hpp>

#include <algorithm>
#include <tuple>

namespace troupe::graph {

namespace {

/// The graph's edges with each variable on the way left out.
std::vector<edge> edges_between_ops(const ssa_graph& g) {
  std::vector<edge> edges;
  std::vector<std::vector<edge>> from_var(g.vars.size());
  for (auto& e : g.edges)
    if (!g.is_op(e.from) && g.is_op(e.to))
      from_var[e.from - g.ops.size()].push_back(e);
  for (auto& e : g.edges) {
    if (!g.is_op(e.from))
      continue;
    if (g.is_op(e.to))
      edges.push_back({e.from, e.to, edge_kind::order, e.distance});
    else
      for (auto& on : from_var[e.to - g.ops.size()])
        edges.push_back(
          {e.from, on.to, edge_kind::order, e.distance + on.distance});
  }
  return edges;
}

/// Of several edges between two ops the one of least distance: it implies the
/// others.
void drop_parallel(std::vector<edge>& edges) {
  const auto key = [](const edge& e) {
    return std::tuple{e.from, e.to, e.distance};
  };
  std::sort(edges.begin(), edges.end(),
            [&](const edge& a, const edge& b) { return key(a) < key(b); });
  edges.erase(std::unique(edges.begin(), edges.end(),
                          [](const edge& a, const edge& b) {
                            return a.from == b.from && a.to == b.to;
                          }),
              edges.end());
  std::erase_if(edges, [](const edge& e) {
    return e.from == e.to && e.distance > 0; // the implicit one
  });
}

} // namespace

op_order::op_order(const ssa_graph& g) {
  ssa_graph ops;
  ops.devices = g.devices;
  for (auto& o : g.ops) {
    op_handle bare;
    bare.id = o.id;
    bare.desc = o.desc;
    bare.device = o.device;
    ops.ops.push_back(std::move(bare));
  }
  ops.edges = edges_between_ops(g);
  drop_parallel(ops.edges);
  ops = remove_redundant_edges(std::move(ops));
  first_.assign(g.ops.size() + 1, 0);
  for (auto& e : ops.edges) {
    ++first_[e.from + 1];
    successors_.push_back({e.to, e.distance}); // sorted by e.from
  }
  for (std::size_t i = 0; i < g.ops.size(); ++i)
    first_[i + 1] += first_[i];
}

} // namespace troupe::graph
