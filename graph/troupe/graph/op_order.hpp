// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/graph/ssa_graph.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace troupe::graph {

/// `op` of step s + distance waits for the op that this is a successor of.
struct op_successor {
  handle_id op = no_handle;
  std::uint32_t distance = 0;
  friend bool operator==(const op_successor&, const op_successor&) = default;
};

/// Which ops wait for which, without the variables between them and without
/// what follows from the rest: from a -> b and b -> c, that c waits for a. An
/// op's edge to itself at distance 1, which graphs leave out, is here unless
/// others imply it: from a -> b and b -> a of the next step, that a waits for
/// itself. Orders the same pairs of ops as the graph's edges and those do.
class op_order {
public:
  /// What is ordered: the ops of a step, or those of later steps behind them.
  enum class scope : std::uint8_t { one_step, all_steps };

  /// Throws error(graph_invalid) if the graph has a cycle.
  explicit op_order(const ssa_graph& g, scope of = scope::all_steps);

  std::span<const op_successor> successors(handle_id op) const {
    return std::span{successors_}.subspan(first_[op],
                                          first_[op + 1] - first_[op]);
  }
  std::size_t size() const noexcept { return successors_.size(); }

private:
  std::vector<std::size_t> first_; // by op; one more at the end
  std::vector<op_successor> successors_;
};

} // namespace troupe::graph
