// SPDX-License-Identifier: Apache-2.0
#pragma once

// Threads that share a queue: the basis of the two algorithms of Paddle Fluid's
// ParallelExecutor.

#include <troupe/apps/bench/task_graph.hpp>
#include <troupe/base/cores.hpp>
#include <troupe/base/threads.hpp>

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace troupe::apps {

/// A queue that all threads share. Threads that find it empty sleep.
template <class T>
class blocking_queue {
public:
  void push(T value) {
    {
      std::lock_guard guard{mutex_};
      values_.push_back(value);
    }
    filled_.notify_one();
  }

  /// False once the queue is closed and empty.
  bool pop(T& value) {
    std::unique_lock guard{mutex_};
    filled_.wait(guard, [this] { return closed_ || !values_.empty(); });
    if (values_.empty())
      return false;
    value = values_.front();
    values_.pop_front();
    return true;
  }

  void close() {
    {
      std::lock_guard guard{mutex_};
      closed_ = true;
    }
    filled_.notify_all();
  }

private:
  std::mutex mutex_;
  std::condition_variable filled_;
  std::deque<T> values_;
  bool closed_ = false;
};

/// Threads that call `work(task)` for each pushed task.
class thread_pool {
public:
  thread_pool(int threads, const std::function<void(std::uint32_t)>& work) {
    try {
      for (int i = 0; i < threads; ++i)
        threads_.push_back(start_thread("ready-queue", [this, i, work] {
          pin_this_thread(static_cast<std::size_t>(i));
          for (std::uint32_t task; ready_.pop(task);)
            work(task);
        }));
    } catch (...) {
      end();
      throw;
    }
  }
  ~thread_pool() { end(); }

  void push(std::uint32_t task) { ready_.push(task); }

private:
  void end() {
    ready_.close();
    for (auto& t : threads_)
      t.join();
  }

  blocking_queue<std::uint32_t> ready_;
  std::vector<std::thread> threads_;
};

/// Runs a graph of tasks with one atomic counter per task. The first task that
/// another one makes ready runs next on the same thread; further ones go to the
/// shared queue. A task resets its own counter when it begins, so a pass needs
/// no preparation.
/// Source: Paddle, details/fast_threaded_ssa_graph_executor.cc.
template <class Work>
class ready_queue {
public:
  /// @param work called once per pass with each task's number, by any thread
  ready_queue(const task_graph& graph, int threads, Work work)
    : graph_(graph), work_(std::move(work)), successors_(graph.successors()),
      missing_(graph.tasks()),
      pool_(threads, [this](std::uint32_t task) { run_from(task); }) {
    for (std::uint32_t t = 0; t < graph.tasks(); ++t) {
      arm(t);
      if (graph.before(t).empty())
        first_.push_back(t);
    }
  }

  /// Runs every task once and returns when all are done.
  void run_pass() {
    const auto tasks = static_cast<std::uint32_t>(graph_.tasks());
    remaining_.store(tasks, std::memory_order_relaxed);
    for (auto t : first_)
      pool_.push(t);
    for (auto left = remaining_.load(std::memory_order_acquire); left > 0;
         left = remaining_.load(std::memory_order_acquire))
      remaining_.wait(left, std::memory_order_acquire);
  }

private:
  static constexpr std::uint32_t no_task = UINT32_MAX;

  void arm(std::uint32_t task) {
    missing_[task].store(static_cast<std::uint32_t>(graph_.before(task).size()),
                         std::memory_order_relaxed);
  }

  void run_from(std::uint32_t task) {
    std::uint32_t done = 0;
    while (task != no_task) {
      arm(task);
      work_(task);
      ++done;
      auto next = no_task;
      for (auto s : successors_[task])
        if (missing_[s].fetch_sub(1, std::memory_order_acq_rel) == 1) {
          if (next == no_task)
            next = s;
          else
            pool_.push(s);
        }
      task = next;
    }
    if (remaining_.fetch_sub(done, std::memory_order_acq_rel) == done)
      remaining_.notify_one();
  }

  const task_graph& graph_;
  Work work_;
  std::vector<std::vector<std::uint32_t>> successors_;
  std::vector<std::uint32_t> first_;
  std::vector<std::atomic<std::uint32_t>> missing_;
  std::atomic<std::uint32_t> remaining_{0};
  thread_pool pool_;
};

} // namespace troupe::apps
