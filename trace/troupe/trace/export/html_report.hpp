// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/trace/trace.hpp>

#include <filesystem>
#include <string_view>

namespace troupe::trace {

/// The style of a report's page, and its SHA-256 in base64: the page's policy
/// allows this style and nothing else.
///@{
extern const std::string_view report_style;
extern const std::string_view report_style_sha256;
///@}

/// Writes a page about a trace that needs no other file, no script and no
/// network. The file appears under its name when it is whole.
///
/// Throws error(io_failure) if the file cannot be written.
void write_html_report(const process_trace& trace,
                       const std::filesystem::path& file);

} // namespace troupe::trace
