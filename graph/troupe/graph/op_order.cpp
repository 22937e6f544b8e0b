// SPDX-License-Identifier: Apache-2.0
#include <troupe/graph/op_order.hpp>

#include <troupe/graph/adjacency.hpp>
#include <troupe/graph/passes/redundant_edges.hpp>
#include <troupe/graph/ssa_edges.hpp>

namespace troupe::graph {

namespace {

/// The graph's edges with each variable on the way left out; of several between
/// two ops the one of least distance, which implies the others.
std::vector<edge> edges_between_ops(const ssa_graph& g) {
  const adjacency out{g, UINT32_MAX};
  std::vector<edge> edges;
  edges.reserve(g.edges.size());
  const auto add = [&](handle_id from, handle_id to, std::uint32_t distance) {
    if (from != to || distance == 0) // else the implicit one
      edges.push_back({from, to, edge_kind::order, distance});
  };
  for (handle_id from = 0; from < g.ops.size(); ++from)
    for (auto& one : out[from])
      if (g.is_op(one.to))
        add(from, one.to, one.distance);
      else
        for (auto& two : out[one.to])
          add(from, two.to, one.distance + two.distance);
  merge_edges(edges);
  return edges;
}

} // namespace

op_order::op_order(const ssa_graph& g) {
  ssa_graph ops;
  ops.devices = g.devices;
  ops.ops.reserve(g.ops.size());
  for (auto& o : g.ops) {
    op_handle bare;
    bare.id = o.id;
    bare.desc = o.desc;
    bare.device = o.device;
    ops.ops.push_back(std::move(bare));
  }
  ops.edges = edges_between_ops(g);
  ops = remove_redundant_edges(std::move(ops));
  first_.assign(g.ops.size() + 1, 0);
  successors_.reserve(ops.edges.size());
  for (auto& e : ops.edges) {
    ++first_[e.from + 1];
    successors_.push_back({e.to, e.distance}); // sorted by e.from
  }
  for (std::size_t i = 0; i < g.ops.size(); ++i)
    first_[i + 1] += first_[i];
}

} // namespace troupe::graph
