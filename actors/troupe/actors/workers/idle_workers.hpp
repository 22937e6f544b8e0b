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

class busy_workers;

/// Runs the parts of an op on the op's own worker and on idle workers. Workers
/// take parts one by one, so nobody waits for a helper that has not begun. A
/// worker that finds no help runs all parts. A worker that becomes idle late
/// takes the remaining parts.
///
/// Thread rule: `run` on any thread, concurrently. A thread that is not a
/// worker of the queue, or that is already inside a part, runs all parts
/// itself.
class idle_workers final : public part_runner {
public:
  /// @param trace records which worker helps which op; null: not recorded
  /// @param busy is told which worker helps which other; null: nobody asks
  explicit idle_workers(job_queue& queue, recorder* trace = nullptr,
                        busy_workers* busy = nullptr);
  ~idle_workers() override; ///< waits for helpers that are still in the queue
  idle_workers(const idle_workers&) = delete;
  idle_workers& operator=(const idle_workers&) = delete;

  void run(std::size_t parts, const part_function& part) override;

  /// Notes, for the trace, that the calling worker begins an op.
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
