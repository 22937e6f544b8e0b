// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/base/job_queue.hpp>

#include <memory>

namespace caf {
class actor_system;
class actor_system_config;
} // namespace caf

namespace troupe {

/// Makes the workers of a system built from `cfg` take their jobs from a
/// Troupe queue, each pinned to a core. Call it before the actor system is
/// made. CAF's own actors wait in the same queue and lose nothing.
/// @param threads workers; 0: one per usable core; at most as many as cores
void configure(caf::actor_system_config& cfg, int threads = 0);

namespace actors {

/// Lends threads to a queue while steps run.
///
/// In a system with Troupe's policy the workers serve the queue all the time
/// and lending does nothing. In any other system *drainers* do: resumables
/// that keep a CAF worker until the queue is stopped, on all workers but one,
/// whose slot the thread takes that waits for a step; so the application's own
/// actors always find a worker. No step needs a drainer: if CAF runs none in
/// time, the thread that waits does all.
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
  /// The calling thread serves the queue until `done()` holds or all steps
  /// have ended. Under Troupe's own policy only a worker of the system does,
  /// that is, a handler of an actor that waits for a step: without it a system
  /// whose workers all wait would stand still. It leaves CAF's own actors to
  /// the other workers. Other threads return at once.
  template <class Done>
  void help_until(Done done) {
    while (!done() && help_once()) {
    }
  }

  /// The same for the jobs that are ready now; never waits for others.
  void help_ready();

private:
  bool help_once();

  struct state;
  std::shared_ptr<state> state_;
};

} // namespace actors

} // namespace troupe
