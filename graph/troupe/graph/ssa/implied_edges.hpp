// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/graph/ssa/reachability.hpp>
#include <troupe/graph/ssa_graph.hpp>

#include <vector>

namespace troupe::graph {

/// Which waits of a graph follow from its other edges over the unrolled steps
/// (its transitive reduction): nobody needs a message for them.
struct implied_edges {
  /// By position in `ssa_graph::edges`: a chain of other edges leads there.
  std::vector<bool> edges;
  /// By op: a chain of edges that are not implied leads from the op to itself
  /// in the next step, e.g. through a parameter that it reads and an update
  /// that waits for it.
  std::vector<bool> own;
};

/// Finds edges that others imply: among those of distance 0 and 1 all but edges
/// from an op to a variable that it writes, which is how the variable learns of
/// it. Of a handle with many edges only some of the ways around each are tried.
/// Edges that lead over more steps count as needed.
///
/// Removing all of them at once leaves the same order: the unrolled steps have
/// no cycle, so a chain that uses another implied edge can use that one's chain
/// instead.
///
/// @param reach of `g`
implied_edges find_implied_edges(const ssa_graph& g, const reachability& reach);

} // namespace troupe::graph
