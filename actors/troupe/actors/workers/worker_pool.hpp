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
/// In a system with Troupe's policy the workers serve the queue all the time.
/// In any other system *drainers* do: resumables that keep a CAF worker until
/// the queue is stopped, on all workers but one, whose seat is left to the
/// thread that waits for a step; so the application's own actors always find a
/// worker. All executors of a system together take no more. No step needs a
/// drainer: if CAF runs none in time or others have taken them, the thread that
/// waits does all.
class worker_pool {
public:
  explicit worker_pool(caf::actor_system& sys);
  ~worker_pool();
  worker_pool(const worker_pool&) = delete;
  worker_pool& operator=(const worker_pool&) = delete;

  job_queue& queue() noexcept;
  /// True if the system's workers serve the queue by themselves.
  bool own_policy() const noexcept;

  /// A step begins: workers are lent if none are. Thread rule: as `executor`.
  void begin_step();
  /// A step has ended; with the last one, lent workers go back. Any thread.
  void end_step() noexcept;

private:
  friend class serving_thread;
  /// The seat for a thread that waits for a step; none: job_queue::no_seat.
  std::size_t borrow_seat() const noexcept;

  struct state;
  std::shared_ptr<state> state_;
};

} // namespace troupe::actors
