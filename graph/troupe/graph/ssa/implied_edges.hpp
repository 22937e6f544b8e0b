// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/graph/ssa/reachability.hpp>
#include <troupe/graph/ssa_graph.hpp>

#include <vector>

namespace troupe::graph {

/// The edges of a graph that follow from its other edges over the unrolled
/// steps (transitive reduction). They need no messages.
struct implied_edges {
  /// By position in `ssa_graph::edges`: true if a chain of other edges implies
  /// the edge.
  std::vector<bool> edges;
  /// By op: true if a chain of edges that are not implied leads from the op to
  /// itself in the next step, e.g. through a parameter that it reads and an
  /// update that waits for it.
  std::vector<bool> own;
};

/// Finds implied edges among those of distance 0 and 1. Edges from an op to a
/// variable that it writes always count as needed, because they notify the
/// variable. Edges of larger distance also count as needed. If a handle has
/// many edges, only some of the detours around each edge are tried.
///
/// Removing all of them at once does not change the order: the unrolled steps
/// have no cycle, so a chain that uses another implied edge can use the chain
/// that implies it instead.
///
/// @param reach of `g`
implied_edges find_implied_edges(const ssa_graph& g, const reachability& reach);

} // namespace troupe::graph
