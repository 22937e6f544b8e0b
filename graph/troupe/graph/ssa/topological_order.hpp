// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/graph/ssa/adjacency.hpp>
#include <troupe/graph/ssa_graph.hpp>

#include <vector>

namespace troupe::graph {

/// All handles, each after those that it waits for in the same step (edges of
/// distance 0). Among several candidates, the one that became ready first comes
/// next. Throws error(graph_invalid) with the path of a cycle, or naming an
/// edge to or from a handle that does not exist.
std::vector<handle_id> topological_order(const ssa_graph& g);

/// The same.
/// @param edges those of `g`, at least of distance 0
std::vector<handle_id> topological_order(const ssa_graph& g,
                                         const adjacency& edges);

} // namespace troupe::graph
