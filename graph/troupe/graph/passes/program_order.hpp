// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/graph/ssa_graph.hpp>

namespace troupe::graph {

/// Makes each device run its ops one after the other in program order,
/// including collectives and fetches. A device begins a step only after it has
/// finished the previous one. The pass adds edges of kind `order` from each op
/// of a device to the next (distance 0) and from the last to the first
/// (distance 1). Results do not change. Tests compare other schedules against
/// this one. Paddle calls it enable_sequential_execution.
///
/// Requires that op handles are numbered in program order, as the builder
/// numbers them.
ssa_graph run_in_program_order(ssa_graph g);

} // namespace troupe::graph
