// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/graph/ssa_graph.hpp>

#include <vector>

namespace troupe::graph {

/// All edges that the handles of `g` need, sorted, at most one per pair of
/// handles (the shortest distance wins, then the first edge_kind):
///
/// - data: op -> var that it writes; var -> op that reads it, with the distance
///   of the input; the last version of a persistable variable -> its version
///   0, distance 1.
/// - write_after_read: each reader of a version -> writer of the next one; for
///   persistable variables also readers of the last version -> first writer,
///   distance 1. Omitted if the writer reads what the reader writes.
/// - write_after_write: writer -> next writer if no op reads in between.
/// - order: each collective -> the next one of its place (a rank: of its
///   device); the last -> the first, distance 1.
/// - transfer: each send -> its recv.
///
/// Uses only op and var handles, not `g.edges`.
std::vector<edge> derive_edges(const ssa_graph& g);

/// Removes the data edges within a step, which the ops' inputs and outputs
/// imply: most edges of a graph. Clears `g.lists_data_edges`. Does nothing if
/// the data edges of `g` are not exactly these, which a pass may cause.
void drop_data_edges(ssa_graph& g);

/// Returns the graph with the edges that `drop_data_edges` has removed.
ssa_graph with_data_edges(ssa_graph g);

/// Sorts edges and keeps one per pair of handles, as `derive_edges` does.
void merge_edges(std::vector<edge>& edges);

} // namespace troupe::graph
