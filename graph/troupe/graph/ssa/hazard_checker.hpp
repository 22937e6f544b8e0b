// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/graph/ssa_graph.hpp>

#include <string>
#include <vector>

namespace troupe::graph {

/// Two accesses to one storage that no chain of edges orders.
struct hazard {
  handle_id first = no_handle;  ///< op handle
  handle_id second = no_handle; ///< op handle, `distance` steps later
  std::uint32_t distance = 0;
  std::string variable;
  std::size_t device = 0;
};

/// Proves that any two conflicting accesses (same variable and device, at
/// least one a write) of up to `steps_in_flight` + 1 consecutive steps are
/// ordered by edges, and that the graph has no cycle of distance 0. Variables
/// that are not persistable have a storage per step in flight and a step is
/// admitted when the one `steps_in_flight` before it has ended; the proof
/// counts on both.
///
/// Ordered means in the order of the versions: the writer of a version, its
/// readers, the writer of the next version; for persistable variables the last
/// version of a step is followed by version 0 of the next. So it is enough to
/// prove, for distances 0 and 1, that neighbours in this chain are ordered:
/// all other conflicts, over any number of steps, follow from these and from
/// the edges of ops to themselves. An op with a delayed input is proven to wait
/// for its writer of so many steps before; the storage lives as long, since
/// there is one per step in flight and per step of the largest distance. Time
/// is nearly linear in the edges for graphs as built (see `reachability`).
///
/// Returns the hazards among such neighbours, empty if proven. Throws
/// error(graph_invalid) with the path of a cycle.
std::vector<hazard> find_hazards(const ssa_graph& g,
                                 std::uint32_t steps_in_flight);

/// Throws error(graph_invalid) naming the first hazard, if there is one.
void check_hazards(const ssa_graph& g, std::uint32_t steps_in_flight);

} // namespace troupe::graph
