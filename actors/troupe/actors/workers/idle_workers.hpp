// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/base/ids.hpp>
#include <troupe/base/job_queue.hpp>
#include <troupe/base/recorder.hpp>
#include <troupe/kernels/part_runner.hpp>

#include <cstddef>
#include <memory>
#include <vector>

namespace troupe::actors {

/// Runs the parts of an op on the worker that runs the op and on workers that
/// have nothing else to do. Nobody waits for a helper that has not begun: parts
/// are taken one by one, so a worker that finds no help does them all, and one
/// that becomes idle late takes what is left.
///
/// Thread rule: `run` on any thread, by several at once. One that is no worker
/// of the queue, or is in a part of its own already, runs all parts itself.
class idle_workers final : public part_runner {
public:
  /// @param trace records who helps which op; null: nobody
  explicit idle_workers(job_queue& queue, recorder* trace = nullptr);
  ~idle_workers() override; ///< waits for helpers that are still in the queue
  idle_workers(const idle_workers&) = delete;
  idle_workers& operator=(const idle_workers&) = delete;

  void run(std::size_t parts, const part_function& part) override;

  /// The calling worker begins an op, for the trace.
  void works_on(std::size_t worker, handle_id op, step_id step) noexcept;

  /// True if no helper is in the queue. Any thread.
  bool idle() const noexcept;

private:
  class round;

  round* round_here() const noexcept;

  job_queue& queue_;
  std::vector<std::unique_ptr<round>> rounds_; // one per worker
};

} // namespace troupe::actors
