// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/graph/ssa_graph.hpp>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::graph {

/// Where the handles go whose names fit a pattern.
struct handle_place {
  /// A handle's name (`handle_name`), in which `*` stands for any characters
  /// and `?` for one: "conv2d#4@cpu:1", "*_grad#*@cpu:0", "fc_0.*:v0@cpu:1".
  std::string pattern;
  std::uint32_t rank = 0; ///< index of a device
  std::string source;     ///< for errors, such as "places.txt, line 3"
};

/// Reads a table: per line a pattern, spaces or tabs, and a rank. Empty lines
/// and those that begin with `#` are comments. Throws error(invalid_argument)
/// with the line's number.
/// @param file its name, for errors
std::vector<handle_place> parse_handle_places(std::string_view text,
                                              const std::string& file);

/// Runs handles on other devices than their own. Of several patterns that fit a
/// handle, the first one counts.
///
/// An op still works on the samples of its own device (`op_handle::shard`), so
/// results keep their bits. A temporary gets its device's name appended ("x"
/// becomes "x@cpu:1"), because the other device may have one of that name. A
/// persistable variable keeps its name, so it can only move to a device that
/// has none of that name: so can optimizer state with the strategies reduce and
/// replicate, which one device has. All versions of a variable share storage,
/// so they move together: it is enough that one of them fits.
///
/// Some handles belong to their device and stay where they are: collectives and
/// fetches, the variables that they use, and variables that are fed. The ops
/// that read and write these can move.
///
/// Goes before `add_transfers`, and after `make_rank_collectives` if devices
/// are in several places.
///
/// @param place_of_device as for `add_transfers`; empty: all are in one place
/// Throws error(invalid_argument) for a rank that is no device, or not the
/// first one of another place (only that one learns of all samples), and for a
/// pattern that fits no handle that can move.
ssa_graph place_handles(ssa_graph g, std::span<const handle_place> table,
                        const std::vector<std::uint32_t>& place_of_device);

} // namespace troupe::graph
