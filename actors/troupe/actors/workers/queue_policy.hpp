// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/base/job_queue.hpp>

#include <atomic>
#include <cstddef>

namespace caf {
class actor_system;
} // namespace caf

namespace troupe::actors {

/// What an actor system set up by `configure` shares with its executors.
struct policy_queue {
  /// queue of the system's workers; null: not set up by `configure`
  job_queue* queue = nullptr;
  /// number of worker pools that share the queue
  std::atomic<int>* pools = nullptr;
};

policy_queue policy_queue_of(caf::actor_system& sys);

/// Identifies a thread as a worker of such a system.
struct worker_thread {
  job_queue* queue = nullptr; ///< null: the thread is not a worker
  std::size_t index = 0;
};

/// Identifies the calling thread.
const worker_thread& this_worker_thread() noexcept;

} // namespace troupe::actors
