// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/graph/ssa_graph.hpp>

#include <string>
#include <vector>

namespace troupe::graph {

/// Two conflicting accesses to the same storage that no chain of edges orders.
struct hazard {
  handle_id first = no_handle; ///< op handle
  /// op handle, in the step `distance` steps later
  handle_id second = no_handle;
  std::uint32_t distance = 0;
  std::string variable;
  std::size_t device = 0;
};

/// Proves that edges order any two conflicting accesses in up to
/// `steps_in_flight` + 1 consecutive steps, and that the graph has no cycle of
/// distance 0. Accesses conflict if they concern the same variable on the same
/// device and at least one is a write.
///
/// The proof relies on two facts. Variables that are not persistable have one
/// storage per step in flight. A step is admitted only when the step
/// `steps_in_flight` before it has ended.
///
/// The required order is that of the versions: the writer of a version, its
/// readers, the writer of the next version. For persistable variables, version
/// 0 of the next step follows the last version of a step. It is enough to
/// prove, for distances 0 and 1, that neighbors in this chain are ordered. All
/// other conflicts, over any number of steps, follow from these and from the
/// edges of ops to themselves.
///
/// An op with a delayed input is proven to wait for the writer the given number
/// of steps before. The storage lives long enough, because there is one per
/// step in flight plus one per step of the largest distance.
///
/// Time is nearly linear in the number of edges for graphs as the builder makes
/// them (see `reachability`).
///
/// Returns the hazards between neighbors; empty if all are ordered. Throws
/// error(graph_invalid) with the path of a cycle.
std::vector<hazard> find_hazards(const ssa_graph& g,
                                 std::uint32_t steps_in_flight);

/// Throws error(graph_invalid), naming the first hazard, if there is one.
void check_hazards(const ssa_graph& g, std::uint32_t steps_in_flight);

} // namespace troupe::graph
