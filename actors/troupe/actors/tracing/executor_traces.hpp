// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/actors/executor.hpp>
#include <troupe/actors/tracing/core_waits.hpp>
#include <troupe/actors/tracing/trace_recording.hpp>
#include <troupe/actors/workers/busy_workers.hpp>
#include <troupe/base/job_queue.hpp>
#include <troupe/base/recorder.hpp>
#include <troupe/graph/program.hpp>
#include <troupe/graph/ssa_graph.hpp>
#include <troupe/trace/phase_log.hpp>
#include <troupe/trace/trace_writer.hpp>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace troupe::actors {

class engine;

/// The traces of an executor: its recorder, the file that is being written, and
/// dumps of what the recorder holds.
///
/// Thread rule: made, begun and destroyed by one thread. After `begin`, any
/// thread.
class executor_traces {
public:
  /// Makes the recorder, with the level of the flight recorder or of the hooks.
  /// The arguments must outlive the object.
  executor_traces(const executor_options& options, const graph::program& p,
                  const job_queue& queue);
  ~executor_traces();
  executor_traces(const executor_traces&) = delete;
  executor_traces& operator=(const executor_traces&) = delete;

  recorder& events() noexcept { return *events_; }
  const std::shared_ptr<recorder>& shared_events() const noexcept {
    return events_;
  }
  /// What the workers run. Null if nobody can ask for their call stacks.
  busy_workers* busy() noexcept { return busy_.get(); }

  /// Begins the trace that the options ask for, or TROUPE_TRACE if they say
  /// nothing. Throws what `trace_recording` throws.
  /// @param g with its data edges
  /// @param runs the graph; must outlive the object's other calls
  /// @param made what the executor did until now
  void begin(const graph::ssa_graph& g, const engine& runs,
             const trace::phase_log& made);

  /// Closes the file that is being written, if there is one. The actors of the
  /// executor still live.
  void end();

  /// Notes the end of a step: how long the first one took, and now and then for
  /// how long the workers waited for cores. Called once per step, in the order
  /// of steps, on the thread that ends it.
  void step_ended(step_id step, std::uint64_t begin_ns,
                  std::uint64_t end_ns) noexcept;

  // See the functions of the executor.
  std::filesystem::path start(const trace_options& wanted,
                              const graph::ssa_graph& g);
  std::optional<std::filesystem::path> stop();
  std::optional<std::string> failure() const;
  trace::process_trace head(const graph::ssa_graph& g) const;
  std::vector<trace::worker_stack> stacks() const;
  std::filesystem::path dump(const std::filesystem::path& file,
                             const graph::ssa_graph& g) const;

private:
  trace_recording::subject subject_of(const trace_options& wanted,
                                      const trace::phase_log& before,
                                      trace_level level,
                                      const graph::ssa_graph& g) const;
  std::filesystem::path own(const std::filesystem::path& file) const;
  trace::trace_writer new_file(const std::filesystem::path& wanted,
                               int first) const;

  const executor_options& options_;
  const graph::program& program_;
  const job_queue& queue_;
  const engine* runs_ = nullptr; // set by `begin`
  trace::clock_reading made_;
  std::int64_t made_unix_ns_;
  std::shared_ptr<recorder> events_; // traced actors have it, too
  level_request hooks_;
  level_request flight_;
  std::unique_ptr<busy_workers> busy_; // null: see `busy`
  core_waits core_waits_;
  trace_options wanted_;        // of the trace that was begun with the executor
  bool has_ended_step_ = false; // steps end one after the other
  mutable std::mutex mutex_;    // guards what follows
  trace::phase_log phases_;     // of the start, without the application's
  std::unique_ptr<trace_recording> recording_; // null: none
  std::filesystem::path recorded_file_;
};

} // namespace troupe::actors
