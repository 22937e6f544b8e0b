// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/trace/trace.hpp>

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::trace {

// The blocks of a file that are JSON. Readers ignore keys that they do not
// know; missing ones have their default values.

std::string to_json(const run_info& run);
std::string to_json(const graph_info& graph);
std::string to_json(std::span<const phase> phases);
std::string to_json(std::span<const worker_stack> stacks);
/// @param begin_ns the begin of the trace by now_ns
std::string to_json(const actor_table::changes& found, std::uint64_t begin_ns);

///@{
/// Throw error(bad_file) if the text is something else, or a number in it is
/// out of range.
run_info parse_run(std::string_view json);
graph_info parse_graph(std::string_view json);
std::vector<phase> parse_phases(std::string_view json);
/// @param handles how many the graph has
std::vector<worker_stack> parse_stacks(std::string_view json,
                                       std::size_t handles);
/// Adds to the actors and types that are known, or replaces what is known of
/// them.
void parse_actors(std::string_view json, std::vector<recorded_actor>& actors,
                  std::vector<std::string>& types);
///@}

} // namespace troupe::trace
