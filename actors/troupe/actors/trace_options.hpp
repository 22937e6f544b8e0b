// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/base/recorder.hpp>
#include <troupe/trace/phase_log.hpp>

#include <cstddef>
#include <filesystem>
#include <string>

namespace troupe {

/// Where and what an executor traces; see docs/trace.md.
struct trace_options {
  /// The .trt file, which is replaced. Empty: none. Process n > 0 of a run over
  /// several writes another one, see `trace_file_of`.
  std::string file = {};
  trace_level level = trace_level::messages;
  std::string command = {}; ///< what is run, in words
  /// What the application did before it made the executor.
  trace::phase_log before = {};
};

/// The file of a process: "run.trt" of process 0, "run.1.trt" of process 1.
std::filesystem::path trace_file_of(const std::filesystem::path& file,
                                    std::size_t process);

} // namespace troupe
