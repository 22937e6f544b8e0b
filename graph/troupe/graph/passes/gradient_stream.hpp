// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/graph/ssa_graph.hpp>

namespace troupe::graph {

/// Moves weight gradients to the stream `gradient` of their device: backward
/// ops whose results only updates and collectives read, or sums that only these
/// read. The device can then compute input gradients, which the rest of the
/// backward pass waits for, at the same time. An op that computes both kinds at
/// once stays.
///
/// Requires that op handles are numbered in program order, as the builder
/// numbers them. Edges and results do not change.
ssa_graph move_weight_gradients(ssa_graph g);

} // namespace troupe::graph
