// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/actors/workers/worker_pool.hpp>
#include <troupe/base/cores.hpp>

#include <cstddef>
#include <optional>

namespace troupe::actors {

/// Makes the calling thread a worker while it submits a step and waits for it.
/// It serves the queue in place of a sleeping worker, so that no other thread
/// needs to be woken for work that this one can do. Jobs that it pushes go to
/// its own list.
///
/// The thread gets a seat unless all workers are busy or the pool's queue
/// serves several executors. In the latter case, another graph's long op could
/// delay the step that the thread waits for. If a worker of the system itself
/// waits (an actor's handler runs a step), it always serves from its own seat.
/// Otherwise a system whose workers all wait would deadlock. CAF's own actors
/// are left to the workers.
class serving_thread {
public:
  explicit serving_thread(worker_pool& pool);
  ~serving_thread();
  serving_thread(const serving_thread&) = delete;
  serving_thread& operator=(const serving_thread&) = delete;

  /// Takes a seat if one is free. The caller must then serve soon, because
  /// others rely on the seat.
  void sit();
  /// Serves until `done()` is true, then returns the seat. Returns at once if
  /// the thread has no seat.
  template <class Done>
  void serve_until(Done done) {
    serve({[](void* argument) { return (*static_cast<Done*>(argument))(); },
           &done});
  }

  /// Runs the jobs that are ready now. Never waits.
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
