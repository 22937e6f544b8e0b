// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/base/cores.hpp>
#include <troupe/base/job_queue.hpp>

#include <cstddef>
#include <memory>
#include <optional>

namespace caf {
class actor_system;
class actor_system_config;
} // namespace caf

namespace troupe {

/// Makes the workers of a system built from `cfg` take their jobs from a
/// Troupe queue, each pinned to a core if there are as many as cores. Call it
/// before the actor system is made. CAF's own actors wait in the same queue and
/// lose nothing.
/// @param threads workers; 0: one per usable core; at most as many as cores
void configure(caf::actor_system_config& cfg, int threads = 0);

namespace actors {

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
  struct state;
  std::shared_ptr<state> state_;
};

/// The calling thread while it submits a step and waits for it: it serves the
/// queue in the place of a worker that sleeps, so that no other thread has to
/// be woken for what this one can do. Jobs that it pushes are its own.
///
/// It has a seat unless all workers are busy, or the pool's queue serves
/// several executors: what it waits for must not be held up by another graph's
/// long op. A worker of the system that waits (a handler of an actor that runs
/// a step) serves from its own seat, always: without it a system whose workers
/// all wait would stand still. CAF's own actors are left to the workers.
class serving_thread {
public:
  explicit serving_thread(worker_pool& pool);
  ~serving_thread();
  serving_thread(const serving_thread&) = delete;
  serving_thread& operator=(const serving_thread&) = delete;

  /// Takes a seat if there is one; then serve soon, since others count on it.
  void sit();
  /// Serves until `done()` holds and gives the seat back; returns at once
  /// without a seat.
  template <class Done>
  void serve_until(Done done) {
    serve({[](void* argument) { return (*static_cast<Done*>(argument))(); },
           &done});
  }

  /// Runs what is ready now; never waits for others.
  void serve_ready();

private:
  void serve(condition done);
  void serve_as_worker(condition done);
  void stand();

  worker_pool& pool_;
  job_queue& queue_;
  bool is_worker_;
  std::size_t seat_;
  std::optional<worker> here_;
  std::optional<stay_on_core> on_core_;
};

} // namespace actors

} // namespace troupe
