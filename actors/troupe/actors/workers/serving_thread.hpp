// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/actors/workers/worker_pool.hpp>
#include <troupe/base/cores.hpp>

#include <cstddef>
#include <optional>

namespace troupe::actors {

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

} // namespace troupe::actors
