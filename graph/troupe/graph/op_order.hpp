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
/// what follows from the rest: from a -> b and b -> c, that c waits for a; from
/// an op's implicit edge to itself, that it waits for the same op of the step
/// before. Orders the same pairs of ops as the graph's edges do.
class op_order {
public:
  /// Throws error(graph_invalid) if the graph has a cycle.
  explicit op_order(const ssa_graph& g);

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
