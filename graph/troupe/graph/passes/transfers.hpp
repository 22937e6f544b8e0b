// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/graph/ssa_graph.hpp>

#include <cstdint>
#include <vector>

namespace troupe::graph {

/// Splits a graph over places: each op then uses variables of its own place
/// only, and values go from place to place by pairs of a `send` and a `recv`.
///
/// - What an op reads from another place comes in a temporary on the op's
///   device: of "w" on cpu:1 that is "w@cpu:1". There is one pair per version
///   and place, in front of the first reader.
/// - What an op writes in another place it writes into such a temporary, and a
///   `recv` writes the variable itself. This concerns collectives, which run in
///   one place: a reduce in that of its result, others in that of their first
///   input.
///
/// Edges are derived again. Those of kind `order` stay, but for those between
/// collectives of different places: transfers alone lead from place to place.
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
