// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/trace/trace.hpp>

#include <filesystem>

namespace troupe::trace {

/// Reads a .trt file up to its end, or up to the first block that is cut or
/// damaged: `process_trace::unread_bytes` counts the rest. Of a process that
/// was killed while its trace began, the graph may be empty; so is the rest
/// then.
///
/// Throws error(not_found) or error(io_failure) if the file cannot be read, and
/// error(bad_file) if it is no trace, is of a newer version of the format, or
/// has a damaged graph, or events without one.
process_trace read_trace(const std::filesystem::path& path);

} // namespace troupe::trace
