// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/base/recorder.hpp>
#include <troupe/base/stacks/thread_stacks.hpp>
#include <troupe/trace/phase_log.hpp>

#include <cstddef>
#include <filesystem>
#include <memory>
#include <string>

namespace troupe {

/// Where and what an executor traces; see docs/trace.md.
struct trace_options {
  /// The .trt file. Empty: none. Process n > 0 of a run over several writes
  /// another one, see `trace_file_of`.
  std::string file = {};
  /// False: it is an error(io_failure) if the file exists.
  bool replaces = true;
  trace_level level = trace_level::messages;
  std::string command = {}; ///< what is run, in words
  /// What the application did before it made the executor.
  trace::phase_log before = {};
  /// What tells this run over several processes from all others, the same in
  /// all of them (`trace::run_info::job`). Traces of two jobs cannot be merged.
  /// Empty: unknown.
  std::string job = {};
};

/// What an executor always records, so that there is something to look at when
/// a run goes wrong. Nothing is written before `executor::dump_trace` is
/// called.
struct flight_recorder_options {
  /// `steps` costs a run nothing that can be measured. `off`: nothing is
  /// recorded unless others ask for it.
  trace_level level = trace_level::steps;
  /// Where dumps go that are not told where. "run.trt": the first free name of
  /// run-1.trt, run-2.trt, ... Empty: the same with troupe-PID.trt, in the
  /// current folder. Process n > 0 of a run over several writes another file,
  /// see `trace_file_of`.
  std::string file = {};
  /// Takes the call stacks of busy workers for each dump. Several executors can
  /// have the same one. Null: dumps have none, because the library catches no
  /// signals by itself. Costs two readings of memory and one of the clock per
  /// op.
  std::shared_ptr<thread_stacks> stacks = {};
};

/// The file of a process: "run.trt" of process 0, "run.1.trt" of process 1.
std::filesystem::path trace_file_of(const std::filesystem::path& file,
                                    std::size_t process);

} // namespace troupe
