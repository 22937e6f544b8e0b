// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/base/recorder.hpp>
#include <troupe/trace/phase_log.hpp>
#include <troupe/trace/trace.hpp>
#include <troupe/trace/trace_writer.hpp>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace caf {
class actor_system;
} // namespace caf

namespace troupe::actors {

/// Writes what a recorder records to a file, on the thread of a background
/// actor, from its construction until its end.
///
/// If the file cannot be written any more, as on a full disk, recording stops
/// and the run goes on: `failure` says why.
///
/// Thread rule: one thread at a time; `failure` and `add` any thread.
class trace_recording {
public:
  /// What is written, besides events.
  struct subject {
    trace::run_info run;
    trace::graph_info graph;
    trace::phase_log phases;
  };

  /// Asks for the level and begins. Events of higher levels, which others ask
  /// for, are left out. Throws error(io_failure) if the file cannot be written.
  /// @param from must outlive the object
  trace_recording(caf::actor_system& system, recorder& from, trace_level level,
                  trace::trace_writer file, subject what);
  /// As `end`.
  ~trace_recording();
  trace_recording(const trace_recording&) = delete;
  trace_recording& operator=(const trace_recording&) = delete;

  /// Writes one more phase of the start. Any thread.
  void add(const trace::phase_log& ended);

  /// Writes the events that are left and closes the file. Returns `failure`.
  std::optional<std::string> end();
  /// Why the file has been given up, if it was.
  std::optional<std::string> failure() const;

private:
  class loop;
  std::shared_ptr<loop> loop_;
  bool has_ended_ = false;
};

} // namespace troupe::actors
