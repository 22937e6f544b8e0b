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
/// Returns the hazards found, empty if proven. Throws error(graph_invalid)
/// with the path of a cycle.
std::vector<hazard> find_hazards(const ssa_graph& g, std::uint32_t steps_in_flight);

/// Throws error(graph_invalid) naming the first hazard, if there is one.
void check_hazards(const ssa_graph& g, std::uint32_t steps_in_flight);

} // namespace troupe::graph
