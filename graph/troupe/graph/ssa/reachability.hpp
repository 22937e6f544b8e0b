// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/graph/ssa/adjacency.hpp>
#include <troupe/graph/ssa_graph.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace troupe::graph {

/// "Does `second` of step s + distance wait for `first` of step s?"
struct order_query {
  handle_id first = no_handle;
  handle_id second = no_handle;
  std::uint32_t distance = 0;
};

/// Determines which handles wait, through any chain of edges, for other handles
/// of the same step or of earlier steps. The implicit edge of an op to itself
/// at distance 1 counts.
///
/// Cost: queries about handles at most two edges apart take time linear in the
/// edges of `first` and its successors. Queries that `may_precede` rejects are
/// also cheap. The others are answered for 64 different `first` handles at a
/// time, by one pass over the edges of each step between them.
class reachability {
public:
  /// Throws error(graph_invalid) if the graph has a cycle.
  explicit reachability(const ssa_graph& g);

  /// False if the longest chain to `first` is at least as long as that to
  /// `second`; then no chain leads from `first` to `second` in the same step. A
  /// cheap test that answers most queries in a wide graph.
  bool may_precede(handle_id first, handle_id second) const {
    return depth_[first] < depth_[second];
  }

  /// The graph's handles in the order of `topological_order`.
  const std::vector<handle_id>& order() const noexcept { return order_; }
  /// The graph's edges of all distances.
  const adjacency& edges() const noexcept { return targets_; }

  /// Positions of the queries whose answer is no, ascending.
  std::vector<std::size_t>
  find_unordered(const std::vector<order_query>& queries) const;

private:
  using query_list = std::vector<const order_query*>;

  query_list drop_near(const query_list& queries) const;
  query_list drop_reached(std::span<const order_query* const> queries) const;
  template <class Visit>
  void visit_near(handle_id from, Visit visit) const;
  struct step_bits;
  void flow(std::span<step_bits> steps) const;

  std::size_t num_ops_;
  adjacency targets_;
  std::vector<handle_id> order_;
  std::vector<std::size_t> position_; // in order_
  // length of the longest chain within the step to a handle
  std::vector<std::uint32_t> depth_;
};

} // namespace troupe::graph
