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

/// Plain threads that serve places of a queue. The destructor stops the queue.
class serving_threads {
public:
  /// Serves all places.
  explicit serving_threads(job_queue& queue)
    : serving_threads(queue, 0, queue.workers()) {}

  /// Serves the places [first, first + count).
  serving_threads(job_queue& queue, std::size_t first, std::size_t count)
    : queue_(queue), ids_(std::make_unique<std::atomic<pid_t>[]>(count)) {
    for (std::size_t i = first; i < first + count; ++i)
      threads_.emplace_back([this, &queue, i, first] {
        ids_[i - first] = gettid();
        worker here{queue, i};
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

  /// Waits until every thread sleeps according to the kernel. A thread whose
  /// seat can be borrowed may still search for jobs once more; a sleeping
  /// thread runs only after it is woken.
  void wait_until_asleep() const {
    for (std::size_t i = 0; i < threads_.size(); ++i)
      while (!is_asleep(ids_[i]))
        std::this_thread::yield();
  }

private:
  job_queue& queue_;
  std::unique_ptr<std::atomic<pid_t>[]> ids_; // 0: the thread has not begun
  std::vector<std::thread> threads_;
};

} // namespace troupe::test
