// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/graph/ssa_graph.hpp>

namespace troupe::graph {

/// Splits each collective into one handle per device, called a *rank*. A rank
/// uses only its own device's variables and runs on its own device's stream.
/// Ranks have the `collective_index`, kind and root of the collective. A rank
/// is done when all ranks have arrived. Results do not change.
///
/// Edges are recomputed; those of kind `order` are kept. One that leads from a
/// collective to another op leads from the rank on that op's device.
///
/// Throws error(invalid_argument) if the graph is split over places or if the
/// pass has already run. Throws error(graph_invalid) if an `order` edge leads
/// to a collective, because it would have to lead to each rank.
ssa_graph make_rank_collectives(ssa_graph g);

} // namespace troupe::graph
