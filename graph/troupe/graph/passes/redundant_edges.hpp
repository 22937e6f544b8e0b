// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/graph/ssa_graph.hpp>

namespace troupe::graph {

/// Drops edges that a chain of other edges implies (transitive reduction over
/// the unrolled steps): fewer messages, the same order of everything. Data
/// edges within a step stay, and so do edges of distance 2 and more.
///
/// Typical finds: a parameter's write-after-read edge from a forward op on
/// whose result the gradient depends, and its new version's edges to all
/// readers of the next step but the first.
///
/// Throws error(graph_invalid) if the graph has a cycle.
ssa_graph remove_redundant_edges(ssa_graph g);

} // namespace troupe::graph
