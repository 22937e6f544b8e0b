// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/graph/ssa_graph.hpp>

#include <cstdint>
#include <vector>

namespace troupe::graph {

/// Splits a graph over places. Each op then uses only variables of its own
/// place.
///
/// - Collectives get a handle per device (passes/rank_collectives.hpp). Their
///   ranks meet in a group that may extend over places.
/// - If another op reads a variable of another place, it reads a temporary on
///   its own device instead: for "w" on cpu:1 it is "w@cpu:1". A pair of a
///   `send` and a `recv` moves the value. There is one pair per version and
///   place, before the first reader.
/// - If an op writes a variable of another place, it writes such a temporary,
///   and a `recv` writes the variable itself.
///
/// Edges are recomputed. Those of kind `order` are kept.
///
/// @param place_of_device a place per device; all equal: the graph stays as it
///   is
/// Throws error(invalid_argument) if there is not one place per device, or if
/// the graph has been split already; error(graph_invalid) if an `order` edge
/// leads to another place, or to a collective.
ssa_graph add_transfers(ssa_graph g,
                        const std::vector<std::uint32_t>& place_of_device);

/// Throws error(graph_invalid) naming op and variable if an op uses a variable
/// of another place.
void check_places(const ssa_graph& g);

} // namespace troupe::graph
