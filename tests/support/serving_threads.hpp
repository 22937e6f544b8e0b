// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/base/job_queue.hpp>

#include <support/sleeping_threads.hpp>

#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <memory>
#include <thread>
#include <vector>

namespace troupe::test {

/// Plain threads that serve places of a queue; at the end the queue is stopped.
class serving_threads {
public:
  /// All places.
  explicit serving_threads(job_queue& queue)
    : serving_threads(queue, 0, queue.workers()) {}

  /// Places [first, first + count).
  serving_threads(job_queue& queue, std::size_t first, std::size_t count)
    : queue_(queue), ids_(std::make_unique<std::atomic<pid_t>[]>(count)) {
    for (std::size_t i = first; i < first + count; ++i)
      threads_.emplace_back([this, &queue, i, first] {
        ids_[i - first] = gettid();
        worker here{queue, i, nullptr};
        while (auto* j = queue.wait(i).work)
          here.run_chain(*j);
      });
  }
  ~serving_threads() {
    queue_.stop();
    for (auto& t : threads_)
      t.join();
  }
  serving_threads(const serving_threads&) = delete;
  serving_threads& operator=(const serving_threads&) = delete;

  /// Waits until the kernel says of every thread that it sleeps. A thread whose
  /// seat can be borrowed may still look for jobs once more; one that sleeps
  /// runs only after it was woken.
  void wait_until_asleep() const {
    for (std::size_t i = 0; i < threads_.size(); ++i)
      while (!is_asleep(ids_[i]))
        std::this_thread::yield();
  }

private:
  job_queue& queue_;
  std::unique_ptr<std::atomic<pid_t>[]> ids_; // 0: has not begun
  std::vector<std::thread> threads_;
};

} // namespace troupe::test
