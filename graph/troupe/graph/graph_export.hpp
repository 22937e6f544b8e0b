// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/graph/ssa_graph.hpp>

#include <string>

namespace troupe::graph {

/// The graph in Graphviz's dot language. Each device is a cluster, ops are
/// boxes and variables are ellipses. Data edges are solid. Other edges are
/// dashed and labeled with their kind. Edges into a later step are blue and
/// labeled with their distance.
std::string to_dot(const ssa_graph& g);

/// The graph as one JSON object on one line:
/// `{"handles":[{"id","kind","type","name","version","device","stream"}],
///   "edges":[{"from","to","kind","distance"}]}`.
///
/// "kind" is "op" or "var". For an op, "type" is the op's type, "name" is its
/// `handle_name` and "version" is null. For a variable, "type" is "feed",
/// "persistable" or "temporary" and "stream" is null. Bytes of names that are
/// not valid UTF-8 are replaced.
std::string to_json(const ssa_graph& g);

} // namespace troupe::graph
