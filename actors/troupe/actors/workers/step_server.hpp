// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/actors/workers/worker_pool.hpp>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>

namespace troupe::actors {

/// Works on steps for which no thread waits, on a thread of its own: in an
/// actor system without Troupe's policy, a step may get no other worker.
///
/// Thread rule: the executor's thread.
class step_server {
public:
  /// Throws error(kernel_failure) if the system refuses a thread.
  /// @param ended number of steps that have ended, notified when it changes;
  ///   outlives the server, as does `pool`
  step_server(worker_pool& pool, const std::atomic<std::uint64_t>& ended);
  /// All steps that it was to serve have ended.
  ~step_server();
  step_server(const step_server&) = delete;
  step_server& operator=(const step_server&) = delete;

  /// Serves until so many steps have ended. Returns at once.
  void serve_until(std::uint64_t steps);

private:
  void run();

  worker_pool& pool_;
  const std::atomic<std::uint64_t>& ended_;
  std::mutex mutex_; // guards the next two
  std::uint64_t wanted_ = 0;
  bool ends_ = false;
  std::condition_variable changed_;
  std::thread thread_;
};

} // namespace troupe::actors
