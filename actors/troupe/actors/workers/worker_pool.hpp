// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/base/job_queue.hpp>

#include <cstddef>
#include <memory>

namespace caf {
class actor_system;
} // namespace caf

namespace troupe::actors {

/// Lends threads to a queue while steps run.
///
/// In a system with Troupe's policy, the workers always serve the queue. In any
/// other system, *drainers* do: resumables that occupy a CAF worker until the
/// queue is stopped. They run on all workers but one, so the application's own
/// actors always find a worker. The thread that waits for a step takes the seat
/// of the remaining worker. All executors of a system share this number of
/// drainers. No step depends on a drainer: if CAF does not run one in time, or
/// other executors use them all, the waiting thread does all the work.
class worker_pool {
public:
  explicit worker_pool(caf::actor_system& sys);
  ~worker_pool();
  worker_pool(const worker_pool&) = delete;
  worker_pool& operator=(const worker_pool&) = delete;

  caf::actor_system& system() noexcept;
  job_queue& queue() noexcept;
  /// True if the system's workers serve the queue (Troupe's policy).
  bool own_policy() const noexcept;

  /// Called when a step begins. Lends workers if none are lent. Thread rule: as
  /// for `executor`.
  void begin_step();
  /// Called when a step has ended. After the last running step, lent workers
  /// are returned. Any thread.
  void end_step() noexcept;

private:
  friend class serving_thread;
  /// Takes a seat for a thread that waits for a step; `job_queue::no_seat` if
  /// there is none.
  std::size_t borrow_seat() const noexcept;

  struct state;
  std::shared_ptr<state> state_;
};

} // namespace troupe::actors
