// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/graph/ssa_graph.hpp>

namespace troupe::graph {

/// Removes edges that a chain of other edges implies (transitive reduction over
/// the unrolled steps). This saves messages and does not change the order of
/// ops. Data edges within a step are kept, and so are edges of distance 2 or
/// more.
///
/// Two typical examples: the write-after-read edge of a parameter from a
/// forward op, if the gradient depends on that op's result; and the edges from
/// a parameter's new version to all readers in the next step except the first.
///
/// Throws error(graph_invalid) if the graph has a cycle.
ssa_graph remove_redundant_edges(ssa_graph g);

} // namespace troupe::graph
