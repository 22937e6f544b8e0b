// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/base/job_queue.hpp>

#include <atomic>
#include <cstddef>

namespace caf {
class actor_system;
} // namespace caf

namespace troupe::actors {

/// What a system that `configure` has set up shares with its executors.
struct policy_queue {
  job_queue* queue = nullptr; ///< of the system's workers; null: another system
  std::atomic<int>* pools = nullptr; ///< worker pools that share the queue
};

policy_queue policy_queue_of(caf::actor_system& sys);

/// Which worker of such a system a thread is.
struct worker_thread {
  job_queue* queue = nullptr; ///< null: none
  std::size_t index = 0;
  void* host = nullptr; ///< CAF's worker
};

/// The calling thread.
const worker_thread& this_worker_thread() noexcept;

} // namespace troupe::actors
