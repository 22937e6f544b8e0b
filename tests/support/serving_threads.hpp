// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/base/job_queue.hpp>

#include <cstddef>
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
    : queue_(queue) {
    for (std::size_t i = first; i < first + count; ++i)
      threads_.emplace_back([&queue, i] {
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

private:
  job_queue& queue_;
  std::vector<std::thread> threads_;
};

} // namespace troupe::test
