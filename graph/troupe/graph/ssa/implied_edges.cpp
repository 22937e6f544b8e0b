// SPDX-License-Identifier: Apache-2.0
#include <troupe/graph/ssa/implied_edges.hpp>

#include <algorithm>
#include <cstdint>
#include <ranges>
#include <span>

namespace troupe::graph {

namespace {

/// Possible detours around each edge: another edge of the same handle, then any
/// chain. An edge is implied if the chain of one of its detours exists.
class detours {
public:
  detours(const ssa_graph& g, const reachability& reach)
    : graph_(g), reach_(reach) {
    for (std::size_t i = 0; i < g.edges.size(); ++i)
      if (may_be_implied(g.edges[i]))
        add_ways_around(i);
  }

  std::vector<order_query> queries;
  std::vector<std::size_t> edge_of_query;

private:
  /// Number of detours that are tried at each end of a handle's list of edges.
  static constexpr std::size_t most_ways = 16;

  bool may_be_implied(const edge& e) const {
    const auto tells_output =
      graph_.is_op(e.from) && !graph_.is_op(e.to) && e.kind == edge_kind::data;
    return e.distance <= 1 && !tells_output;
  }

  void add(std::size_t index, handle_id from, std::uint32_t distance) {
    queries.push_back({from, graph_.edges[index].to, distance});
    edge_of_query.push_back(index);
  }

  // In a long list, only the first and last entries are tried: otherwise the
  // cost would be quadratic in its length. The list is in program order, so
  // these entries are likely to lead to the target.
  void add_ways_around(std::size_t index) {
    const auto& e = graph_.edges[index];
    const auto ways = reach_.edges()[e.from];
    for (std::size_t i = 0; i < ways.size(); ++i) {
      if (i == most_ways && ways.size() > 2 * most_ways)
        i = ways.size() - most_ways;
      const auto& way = ways[i];
      if (way.to == e.to || way.distance > e.distance)
        continue;
      const auto left = e.distance - way.distance;
      if (left > 0 || reach_.may_precede(way.to, e.to))
        add(index, way.to, left);
    }
    // The implicit edge of an op to itself also leads to the next step.
    if (e.distance == 1 && graph_.is_op(e.from))
      add(index, e.from, 0);
  }

  const ssa_graph& graph_;
  const reachability& reach_;
};

std::vector<bool> find_implied(const ssa_graph& g, const reachability& reach) {
  const detours ways{g, reach};
  std::vector<bool> exists(ways.queries.size(), true);
  for (auto query : reach.find_unordered(ways.queries))
    exists[query] = false;
  std::vector<bool> implied(g.edges.size());
  for (std::size_t query = 0; query < exists.size(); ++query)
    if (exists[query])
      implied[ways.edge_of_query[query]] = true;
  return implied;
}

auto of_step(const reachability& reach, handle_id from) {
  return reach.edges()[from]
         | std::views::filter([](auto& e) { return e.distance == 0; });
}

/// Finds ops that wait for themselves through one of the given edges of
/// distance 1: within a step, a chain leads from the end of the edge to the op,
/// and another from the op to the start of the edge.
class returning_ops {
public:
  /// @param across all the edges of distance 1
  returning_ops(const ssa_graph& g, const reachability& reach,
                std::span<const edge> across)
    : reach_(reach), found_(g.ops.size()) {
    marks ends(g.size()), beginnings(g.size());
    for (auto& e : across) {
      ends[e.to] = true;
      beginnings[e.from] = true;
    }
    ends = with_all_behind(std::move(ends));
    beginnings = with_all_before(std::move(beginnings));
    open_.resize(g.size());
    for (std::size_t op = 0; op < g.ops.size(); ++op)
      open_[op] = ends[op] && beginnings[op];
    look_for_open();
  }

  static constexpr std::size_t edges_at_once = 64;

  void find(std::span<const edge> edges) {
    std::vector<bits> behind(open_.size());
    std::vector<bits> before(open_.size());
    for (std::size_t i = 0; i < edges.size(); ++i) {
      behind[edges[i].to] |= bits{1} << i;
      before[edges[i].from] |= bits{1} << i;
    }
    for (auto id : reach_.order())
      for (auto& next : of_step(reach_, id))
        behind[next.to] |= behind[id];
    for (auto id : reach_.order() | std::views::reverse)
      for (auto& next : of_step(reach_, id))
        before[id] |= before[next.to];
    for (std::size_t op = 0; op < found_.size(); ++op)
      if ((before[op] & behind[op]) != 0) {
        found_[op] = true;
        open_[op] = false;
      }
    look_for_open();
  }

  /// False if no op that has not been found yet can wait for itself through
  /// `e`.
  bool may_find(const edge& e) const {
    return before_open_[e.to] && behind_open_[e.from];
  }

  std::vector<bool> take() && { return std::move(found_); }

private:
  using bits = std::uint64_t;
  using marks = std::vector<bool>; // by handle

  marks with_all_behind(marks m) const {
    for (auto id : reach_.order())
      if (m[id])
        for (auto& next : of_step(reach_, id))
          m[next.to] = true;
    return m;
  }

  marks with_all_before(marks m) const {
    for (auto id : reach_.order() | std::views::reverse)
      m[id] = m[id]
              || std::ranges::any_of(of_step(reach_, id),
                                     [&](auto& next) { return m[next.to]; });
    return m;
  }

  void look_for_open() {
    behind_open_ = with_all_behind(open_);
    before_open_ = with_all_before(open_);
  }

  const reachability& reach_;
  std::vector<bool> found_; // by op
  marks open_;              // ops that may yet be found
  marks behind_open_, before_open_;
};

// A chain to the next step has exactly one edge of distance 1. It is not the
// implicit edge of another op: within a step, that op would be both after and
// before the first one. A few edges of distance 1 lead around most ops, so each
// pass over the graph leaves fewer edges to try.
std::vector<bool> find_own(const ssa_graph& g, const reachability& reach,
                           const std::vector<bool>& implied) {
  std::vector<edge> across;
  for (std::size_t i = 0; i < g.edges.size(); ++i)
    if (g.edges[i].distance == 1 && !implied[i])
      across.push_back(g.edges[i]);
  returning_ops returning{g, reach, across};
  while (!across.empty()) {
    const auto count = std::min(across.size(), returning_ops::edges_at_once);
    returning.find(std::span{across}.last(count));
    across.resize(across.size() - count);
    std::erase_if(across, [&](auto& e) { return !returning.may_find(e); });
  }
  return std::move(returning).take();
}

} // namespace

implied_edges find_implied_edges(const ssa_graph& g,
                                 const reachability& reach) {
  implied_edges found;
  found.edges = find_implied(g, reach);
  found.own = find_own(g, reach, found.edges);
  return found;
}

} // namespace troupe::graph
