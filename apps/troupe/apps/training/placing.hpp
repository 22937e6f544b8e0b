// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/actors/executor.hpp>

#include <cstddef>
#include <string>
#include <vector>

namespace troupe::apps {

/// Reads the table of `--place` (graph/passes/place_handles.hpp). Throws
/// usage_error if the file cannot be read, is not such a table, or has no line.
std::vector<graph::handle_place> read_places(const std::string& file);

/// Gives each of `ranks` processes devices like those in `options`, with
/// numbers of their own. The places in `options`, which name ranks, then name
/// their first devices. Returns the process of each device. Throws usage_error
/// if a place names no rank.
std::vector<std::size_t> spread_devices(executor_options& options,
                                        std::size_t ranks);

} // namespace troupe::apps
