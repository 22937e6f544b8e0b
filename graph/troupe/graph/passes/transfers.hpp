// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/graph/ssa_graph.hpp>

#include <cstdint>
#include <vector>

namespace troupe::graph {

/// Splits a graph over places. Each op then uses only variables of its own
/// place, and pairs of a `send` and a `recv` move values between places.
///
/// - If an op reads a variable of another place, it reads a temporary on its
///   own device instead: for "w" on cpu:1 it is "w@cpu:1". There is one pair
///   per version and place, before the first reader.
/// - If an op writes a variable of another place, it writes such a temporary,
///   and a `recv` writes the variable itself. Only collectives do this. A
///   reduce runs in the place of its result, other collectives in the place of
///   their first input.
///
/// Edges are recomputed. Those of kind `order` are kept, except between
/// collectives of different places, because only transfers lead from place to
/// place.
///
/// @param place_of_device a place per device; all equal: the graph stays as it
///   is
/// Throws error(invalid_argument) if there is not one place per device, if
/// collectives have a handle per device, or if the graph has been split
/// already; error(graph_invalid) if an `order` edge of other handles leads to
/// another place.
ssa_graph add_transfers(ssa_graph g,
                        const std::vector<std::uint32_t>& place_of_device);

/// Throws error(graph_invalid) naming op and variable if an op uses a variable
/// of another place.
void check_places(const ssa_graph& g);

} // namespace troupe::graph
