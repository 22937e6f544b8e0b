// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/trace/merge.hpp>
#include <troupe/trace/trace.hpp>

#include <array>
#include <cstdint>
#include <filesystem>
#include <string_view>
#include <vector>

namespace troupe::trace {

/// Formats of other programs; docs/trace.md describes what each one holds.
enum class export_format : std::uint8_t {
  chrome,     ///< JSON of chrome://tracing, which Perfetto's page reads, too
  perfetto,   ///< Perfetto's track events
  sqlite,     ///< a database
  dot,        ///< Graphviz: the graph, with times
  csv,        ///< a line per run of an op
  speedscope, ///< JSON of speedscope
};

/// The formats' names, in the order of the enumerators.
inline constexpr std::array<std::string_view, 6> export_format_names{
  "chrome", "perfetto", "sqlite", "dot", "csv", "speedscope"};

/// Throws error(invalid_argument) for a name that is none of
/// `export_format_names`.
export_format parse_export_format(std::string_view name);

/// False if this build lacks a library that the format needs.
bool is_built_in(export_format format) noexcept;

/// Writes traces of a run's processes to one file, on one clock
/// (merge_clocks), ordered by process. The file appears under its name when it
/// is whole. Returns what was found about the clocks.
///
/// Throws error(io_failure) if the file cannot be written, error(not_found) if
/// the format is not built in, and error(invalid_argument) if there is no trace
/// or they are not of one run.
clock_merge export_trace(std::vector<process_trace> traces,
                         export_format format,
                         const std::filesystem::path& file);

} // namespace troupe::trace
