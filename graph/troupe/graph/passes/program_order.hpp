// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/graph/ssa_graph.hpp>

namespace troupe::graph {

/// Makes each device run its ops one after the other in the order of the
/// program, collectives and fetches included, and begin a step when it has
/// ended the one before: edges of kind order from each op of a device to the
/// next (distance 0) and from the last to the first (distance 1). Results do
/// not change. Paddle's enable_sequential_execution; an oracle for schedules.
///
/// Relies on op handles being numbered in program order, as the builder does.
ssa_graph run_in_program_order(ssa_graph g);

} // namespace troupe::graph
