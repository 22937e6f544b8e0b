// SPDX-License-Identifier: Apache-2.0
#include <troupe/graph/op_order.hpp>

#include <troupe/graph/adjacency.hpp>
#include <troupe/graph/passes/redundant_edges.hpp>
#include <troupe/graph/ssa_edges.hpp>
#include <troupe/graph/topological_order.hpp>

#include <algorithm>
#include <iterator>
#include <ranges>

namespace troupe::graph {

namespace {

/// The graph's edges with each variable on the way left out; of several between
/// two ops the one of least distance, which implies the others.
/// @param farthest distance of what is left out
std::vector<edge> edges_between_ops(const ssa_graph& g,
                                    std::uint32_t farthest) {
  const adjacency out{g, farthest};
  std::vector<edge> edges;
  edges.reserve(g.edges.size());
  const auto add = [&](handle_id from, handle_id to, std::uint32_t distance) {
    if (distance <= farthest && (from != to || distance == 0))
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

/// Marks ops that lie behind the end of one of `edges`, all of distance 1, and
/// before its beginning: they wait for themselves by way of it.
class returning_ops {
public:
  explicit returning_ops(const ssa_graph& ops)
    : order_(topological_order(ops)), out_(ops, 0), found_(ops.ops.size()) {}

  static constexpr std::size_t edges_at_once = 64;

  void add(std::span<const edge> edges) {
    std::vector<bits> behind(found_.size());
    std::vector<bits> before(found_.size());
    for (std::size_t i = 0; i < edges.size(); ++i) {
      behind[edges[i].to] |= bits{1} << i;
      before[edges[i].from] |= bits{1} << i;
    }
    for (auto id : order_)
      for (auto& next : out_[id])
        behind[next.to] |= behind[id];
    for (auto id : order_ | std::views::reverse) {
      for (auto& next : out_[id])
        before[id] |= before[next.to];
      found_[id] = found_[id] || (before[id] & behind[id]) != 0;
    }
  }

  const std::vector<bool>& found() const noexcept { return found_; }

private:
  using bits = std::uint64_t;

  std::vector<handle_id> order_;
  adjacency out_;
  std::vector<bool> found_;
};

/// Edges of ops to themselves that no chain implies. A chain to the next step
/// has one edge of distance 1; that of another op to itself leads nowhere that
/// the op before it in the chain has not been.
std::vector<edge> own_edges(const ssa_graph& ops) {
  std::vector<edge> across;
  std::ranges::copy_if(ops.edges, std::back_inserter(across),
                       [](const edge& e) { return e.distance == 1; });
  returning_ops returning{ops};
  for (std::span<const edge> rest{across}; !rest.empty();) {
    const auto count = std::min(rest.size(), returning_ops::edges_at_once);
    returning.add(rest.first(count));
    rest = rest.subspan(count);
  }
  std::vector<edge> own;
  for (auto& o : ops.ops)
    if (!returning.found()[o.id])
      own.push_back({o.id, o.id, edge_kind::order, 1});
  return own;
}

} // namespace

op_order::op_order(const ssa_graph& g, scope of) {
  const auto across = of == scope::all_steps;
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
  ops.edges = edges_between_ops(g, across ? UINT32_MAX : 0);
  ops = remove_redundant_edges(std::move(ops));
  if (across) {
    const auto own = own_edges(ops);
    ops.edges.insert(ops.edges.end(), own.begin(), own.end());
    merge_edges(ops.edges);
  }
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
