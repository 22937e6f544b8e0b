// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/graph/ssa_graph.hpp>

#include <string>

namespace troupe::graph {

/// The graph in Graphviz' dot language: a cluster per device, ops as boxes,
/// variables as ellipses, data edges solid, other edges dashed with their kind,
/// edges into a later step blue with their distance.
std::string to_dot(const ssa_graph& g);

/// The graph as one JSON object on one line:
/// `{"handles":[{"id","kind","type","name","version","device","stream"}],
///   "edges":[{"from","to","kind","distance"}]}`.
///
/// kind is "op" or "var". Of an op, type is the op's type, name its
/// `handle_name` and version null. Of a variable, type is "feed",
/// "persistable" or "temporary" and stream null. Bytes of names that are not
/// UTF-8 are replaced.
std::string to_json(const ssa_graph& g);

} // namespace troupe::graph
