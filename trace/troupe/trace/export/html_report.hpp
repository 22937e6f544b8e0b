// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/trace/merge.hpp>
#include <troupe/trace/trace.hpp>

#include <filesystem>
#include <span>
#include <string_view>

namespace troupe::trace {

/// The style of a report's page, and its SHA-256 in base64: the page's policy
/// allows this style and nothing else.
///@{
extern const std::string_view report_style;
extern const std::string_view report_style_sha256;
///@}

/// Writes a page about the traces of a run's processes that needs no other
/// file, no script and no network. The file appears under its name when it is
/// whole.
///
/// Throws error(io_failure) if the file cannot be written.
/// @param parts at least one, on one clock (merge_clocks)
/// @param clocks what was found about that clock
void write_html_report(std::span<const process_trace> parts,
                       const std::filesystem::path& file,
                       const clock_merge& clocks = {});

} // namespace troupe::trace
