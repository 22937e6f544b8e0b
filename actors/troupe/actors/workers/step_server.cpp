// SPDX-License-Identifier: Apache-2.0
#include <troupe/actors/workers/step_server.hpp>

#include <troupe/actors/workers/serving_thread.hpp>
#include <troupe/base/threads.hpp>

namespace troupe::actors {

step_server::step_server(worker_pool& pool,
                         const std::atomic<std::uint64_t>& ended)
  : pool_(pool), ended_(ended),
    thread_(start_thread("troupe-steps", [this] { run(); })) {}

step_server::~step_server() {
  {
    std::lock_guard guard{mutex_};
    ends_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

void step_server::serve_until(std::uint64_t steps) {
  {
    std::lock_guard guard{mutex_};
    wanted_ = steps;
  }
  changed_.notify_one();
}

void step_server::run() {
  for (std::uint64_t served = 0;;) {
    {
      std::unique_lock guard{mutex_};
      changed_.wait(guard, [&] { return ends_ || wanted_ > served; });
      if (wanted_ <= served)
        return;
      served = wanted_;
    }
    serving_thread serving{pool_};
    serving.serve_until(
      [&] { return ended_.load(std::memory_order_acquire) >= served; });
    for (auto count = ended_.load(std::memory_order_acquire); count < served;
         count = ended_.load(std::memory_order_acquire))
      ended_.wait(count, std::memory_order_acquire);
  }
}

} // namespace troupe::actors
