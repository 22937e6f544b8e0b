// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/graph/ssa_graph.hpp>

namespace troupe::graph {

/// Makes of each collective a handle per device: a *rank*, which uses its own
/// device's variables alone, on its own device's stream. Ranks of a collective
/// have its `collective_index`, kind and root; each is done when all have come.
/// Results stay the same.
///
/// Edges are derived again; those of kind `order` between other ops stay.
///
/// Throws error(invalid_argument) if the graph is split over places, or if this
/// has been done; error(graph_invalid) if an `order` edge leads from a
/// collective to another op, or to one: it would have to lead to each rank.
ssa_graph make_rank_collectives(ssa_graph g);

} // namespace troupe::graph
