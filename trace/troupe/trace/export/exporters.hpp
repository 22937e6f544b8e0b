// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/trace/export/track_slices.hpp>

#include <filesystem>
#include <span>

namespace troupe::trace {

// One function per format. They share the rules of `export_trace`.

using export_input = std::span<const traced_process>;

void export_chrome(export_input traces, const std::filesystem::path& file);
void export_perfetto(export_input traces, const std::filesystem::path& file);
void export_dot(std::span<const process_trace> traces,
                const std::filesystem::path& file);
void export_csv(export_input traces, const std::filesystem::path& file);
void export_speedscope(export_input traces, const std::filesystem::path& file);

/// Throws error(not_found) in a build without SQLite.
void export_sqlite(export_input traces, std::span<const parcel> parcels,
                   const std::filesystem::path& file);
bool has_sqlite() noexcept;

} // namespace troupe::trace
