// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace troupe {

class job_queue;
class worker;

/// Something that a worker runs once per push. Intrusive: whoever pushes it
/// keeps it alive until it has run, and does not push it again before.
class job {
public:
  virtual void run(worker& on) = 0;

protected:
  job() = default;
  job(const job&) = delete;
  job& operator=(const job&) = delete;
  ~job() = default;

private:
  friend class job_list;
  job* next_ = nullptr;
  job* previous_ = nullptr;
};

enum class job_priority : std::uint8_t { normal, high };

/// A thread while it runs jobs of a queue. Lives on that thread's stack.
class worker {
public:
  /// @param index which of the queue's workers this is, below its size
  /// @param host what lends the thread (an actor system's execution unit);
  ///   null for a plain thread
  worker(job_queue& queue, std::size_t index, void* host) noexcept;
  ~worker();
  worker(const worker&) = delete;
  worker& operator=(const worker&) = delete;

  job_queue& queue() const noexcept { return queue_; }
  std::size_t index() const noexcept { return index_; }
  void* host() const noexcept { return host_; }

  /// The worker that runs on this thread, else null.
  static worker* current() noexcept;

  /// Runs `j` and then, at once and on this thread, the jobs that it names
  /// with `run_next`, at most `chain_limit` of them: the first ready successor
  /// of an op finds its inputs in this core's cache. The bound keeps other
  /// users of the queue from waiting for ever.
  void run_chain(job& j);

  /// Makes `j` the next job of the chain. False if there is one already or
  /// the bound is reached; then push it.
  bool run_next(job& j) noexcept;

  static constexpr int chain_limit = 64;

private:
  job_queue& queue_;
  std::size_t index_;
  void* host_;
  worker* outer_; // a worker of another queue that this thread is too
  job* next_ = nullptr;
  int chain_length_ = 0;
};

/// Ready jobs of a group of workers: two priorities, a list per worker and one
/// for foreign threads; idle workers take from others and then sleep. A push
/// wakes one sleeper, never two for one job, and no worker polls.
///
/// Own jobs are taken newest first (their data is in cache), others' oldest
/// first; every second look begins with the foreign list, so that nothing
/// starves.
///
/// Thread rule: `push`, `stop` from any thread; `pop` and `wait` by the thread
/// that is worker `index` now.
class job_queue {
public:
  explicit job_queue(std::size_t workers);
  ~job_queue();
  job_queue(const job_queue&) = delete;
  job_queue& operator=(const job_queue&) = delete;

  std::size_t workers() const noexcept;

  /// Adds `j` to the list of the calling worker, or of foreign threads, and
  /// wakes a sleeping worker if there is one.
  void push(job& j, job_priority priority = job_priority::normal) noexcept;
  /// Adds `j` to the list of worker `home`, where it will run unless another
  /// worker is idle first.
  void push_to(std::size_t home, job& j,
               job_priority priority = job_priority::normal) noexcept;

  /// Adds `j`, which runs just now and has more to do, behind all jobs of the
  /// calling worker. Wakes nobody.
  void yield(job& j, job_priority priority = job_priority::normal) noexcept;
  /// A hint whether jobs wait that worker `index` would take before stealing.
  bool others_wait(std::size_t index) const noexcept;

  /// The next job for worker `index`, or null if there is none anywhere.
  job* pop(std::size_t index) noexcept;
  /// The same, but sleeps until there is a job; null once the queue is stopped
  /// and empty.
  job* wait(std::size_t index) noexcept;

  /// Makes `wait` return null to all workers when no jobs are left.
  void stop() noexcept;
  /// Takes back `stop`; no worker may be in `wait`.
  void restart() noexcept;

  /// Waits until each worker that is in `worker::run_chain` now has left it at
  /// least once: afterwards no worker touches a job that had run before the
  /// call and is in no list. Not from a worker.
  void quiesce() const noexcept;

private:
  friend class worker;
  void enter(std::size_t index) noexcept;
  void leave(std::size_t index) noexcept;

  struct state;
  std::unique_ptr<state> state_;
};

/// Binds the calling thread to core `index` modulo the cores that the process
/// may use. Returns false where the system refuses.
bool pin_this_thread(std::size_t index) noexcept;

/// Cores that this process may use.
std::size_t usable_cores() noexcept;

} // namespace troupe
