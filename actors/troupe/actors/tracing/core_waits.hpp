// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/base/ids.hpp>
#include <troupe/base/job_queue.hpp>
#include <troupe/base/recorder.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include <sys/types.h>

namespace troupe::actors {

/// Records for how long the threads of workers were ready and had no core
/// (`event_kind::core_wait`), so that a trace tells a slow op from an op whose
/// worker was preempted. The system counts that time: a reading costs a few
/// microseconds per worker, and is made at ends of steps, at most every 10 ms,
/// and with many workers less often. Files are open for the reading only, since
/// an application can have a thousand executors.
///
/// Thread rule: one thread at a time.
class core_waits {
public:
  /// The arguments must outlive the object.
  core_waits(const job_queue& queue, recorder& to);

  /// Reads and records, if it is due and the recorder's level is at least
  /// `steps`. Allocates nothing.
  void step_ended(step_id step) noexcept;

private:
  /// What the system has counted for the thread of a worker.
  struct thread_wait {
    pid_t thread = 0;
    std::uint64_t waited_ns = 0;
  };

  void read_worker(std::size_t worker, step_id step) noexcept;
  void read_machine(step_id step, std::uint64_t now) noexcept;

  const job_queue& queue_;
  recorder& to_;
  std::vector<thread_wait> of_worker_;
  std::optional<std::uint64_t> stolen_ns_;
  std::uint64_t due_ns_ = 0, machine_due_ns_ = 0; // by now_ns
};

} // namespace troupe::actors
