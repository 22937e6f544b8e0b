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

/// Which handles wait, through any chain of edges, for which others of the same
/// step or of steps before; the implicit edge of an op to itself at distance 1
/// counts.
///
/// Cost: queries about handles at most two edges apart take time in the edges
/// of `first` and its successors, and so do those that `may_precede` answers.
/// The others are answered for 64 different `first` at a time, each time by
/// one pass over the edges of each step between them.
class reachability {
public:
  /// Throws error(graph_invalid) if the graph has a cycle.
  explicit reachability(const ssa_graph& g);

  /// False if no chain leads from `first` to `second` of the same step since
  /// the longest chain to `first` is no shorter than that to `second`. A look,
  /// that spares most queries in a wide graph.
  bool may_precede(handle_id first, handle_id second) const {
    return depth_[first] < depth_[second];
  }

  /// The graph's handles as `topological_order` gives them.
  const std::vector<handle_id>& order() const noexcept { return order_; }
  /// The graph's edges of all distances.
  const adjacency& edges() const noexcept { return targets_; }

  /// Positions in `queries` whose answer is no, ascending.
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
  std::vector<std::uint32_t> depth_;  // longest chain of the step to a handle
};

} // namespace troupe::graph
