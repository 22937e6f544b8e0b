// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace troupe {

class job_queue;
class worker;
struct worker_place;

/// Something that a worker runs once per push. Whoever pushes it keeps it alive
/// until it has run.
class job {
public:
  virtual void run(worker& on) = 0;

protected:
  job() = default;
  job(const job&) = delete;
  job& operator=(const job&) = delete;
  ~job() = default;
};

enum class job_priority : std::uint8_t { normal, high };

/// What a thread waits for while it runs jobs. Without a function: nothing.
struct condition {
  bool (*holds_for)(void*) = nullptr;
  void* context = nullptr;

  bool holds() const { return holds_for && holds_for(context); }
};

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

  /// Runs `j` and then, at once and on this thread, the first job that each
  /// names with `run_soon`: the first ready successor of an op finds its inputs
  /// in this core's cache. After `chain_limit` of them the worker's oldest job
  /// has its turn, and the chain ends if other users of the queue wait, or if
  /// `until` holds.
  void run_chain(job& j, condition until = {});

  /// Runs `j`, which has become ready, soon: as the next job of the chain, or,
  /// if there is one or no chain, as any job that is pushed.
  void run_soon(job& j, job_priority priority = job_priority::normal) noexcept;

  /// Runs `j` in this chain, behind what is next in it and what is kept
  /// already, unseen by other workers: for jobs that are done before another
  /// could have fetched them. If jobs turn out longer, or the chain ends, it
  /// goes to this worker's list. Without a chain, beside `most_kept` others, or
  /// if jobs are not short, as any job that is pushed. By this worker's thread.
  void keep(job& j) noexcept;
  static constexpr std::uint32_t most_kept = 8;

  /// The job that runs has done as much as `count` jobs since it began or said
  /// so last: for the estimate of how short jobs are. By this worker's thread.
  void did(std::uint32_t count) noexcept;

  /// Whether its jobs are so short that it gets to a new one before another
  /// worker could have fetched it; the one that runs included. By its thread.
  bool has_short_jobs() const noexcept;

  static constexpr std::uint32_t chain_limit = 64;

private:
  friend class job_queue;
  void push(job& j, job_priority priority) noexcept;
  job* next_of_chain() noexcept;
  void put_next_back() noexcept;
  job* take_kept() noexcept;
  void put_kept_back() noexcept;
  job* begin_next_chain(condition until) noexcept;
  void time_jobs() noexcept;

  job_queue& queue_;
  std::size_t index_;
  void* host_;
  worker* outer_; // a worker of another queue that this thread is too
  worker_place& place_;
  job* next_ = nullptr;
  job_priority next_priority_ = job_priority::normal;
  std::uint32_t chain_left_ = 0;
  // A ring: the oldest is `kept_[first_kept_ % most_kept]`.
  std::array<job*, most_kept> kept_{};
  std::uint32_t first_kept_ = 0;
  std::uint32_t behind_kept_ = 0;
  std::uint32_t untimed_ = 0; // jobs since `timed_until_`
  std::uint32_t jobs_between_times_ = 1;
  std::uint64_t timed_until_ = 0; // in ticks; 0: it runs no job
};

/// What a worker finds to do: a job, or a guest, or neither.
struct found_work {
  job* work = nullptr;
  void* guest = nullptr;

  explicit operator bool() const noexcept { return work || guest; }
};

/// Ready jobs of a group of workers: each worker has a *seat* with a list of
/// jobs in two priorities; one more list is for foreign threads, one for
/// guests.
///
/// A push reaches an idle worker at once if that pays: the pusher gives the job
/// to a worker that is looking for one, unless its own jobs are so short that
/// it gets to this one sooner. It wakes a sleeper only if nobody is looking.
/// Idle workers look for a short while and then sleep; none polls for long.
///
/// Own jobs are taken newest first (their data is in cache), others' oldest
/// first. So that nothing starves, every second look begins with guests or with
/// the foreign list, in turn, and after a chain's length of jobs a worker takes
/// the oldest of its own.
///
/// *Guests* are what only the workers' own threads can run: the actors of an
/// actor system that the queue shares its workers with. To the queue they are
/// pointers.
///
/// A thread that waits for jobs' results may *borrow* the seat of a worker that
/// sleeps and serve in its place: nobody has to be woken, and no more threads
/// run than there are seats.
///
/// Thread rule: `push`, `stop`, `borrow` from any thread; what has a parameter
/// `index` by the thread that is worker `index` now.
class job_queue {
public:
  explicit job_queue(std::size_t workers);
  ~job_queue();
  job_queue(const job_queue&) = delete;
  job_queue& operator=(const job_queue&) = delete;

  std::size_t workers() const noexcept;

  /// Adds `j` to the list of the calling worker, or of foreign threads.
  void push(job& j, job_priority priority = job_priority::normal) noexcept;
  /// How many jobs went into the list of foreign threads, the only list that
  /// all workers share. Any thread.
  std::uint64_t foreign_pushes() const noexcept;
  /// Adds `j` to the list of worker `home`, where it will run unless another
  /// worker is idle first.
  void push_to(std::size_t home, job& j,
               job_priority priority = job_priority::normal) noexcept;
  /// Adds a guest.
  void push_guest(void* guest) noexcept;

  /// Adds `j`, which has more to do, behind all jobs of the calling worker.
  void yield(job& j, job_priority priority = job_priority::normal) noexcept;
  /// A hint whether something waits that worker `index` would take before
  /// stealing.
  bool others_wait(std::size_t index) const noexcept;

  /// The next job for worker `index`, or null if there is none anywhere.
  job* pop(std::size_t index) noexcept;
  /// The next job or guest for worker `index`; sleeps until there is one.
  /// Nothing once the queue is stopped and has no jobs.
  found_work wait(std::size_t index) noexcept;
  /// A guest, oldest first; null if there is none.
  void* pop_guest() noexcept;

  /// Makes `wait` return nothing to all workers when no jobs are left.
  void stop() noexcept;
  /// Takes back `stop`; no worker may be in `wait`.
  void restart() noexcept;
  /// The thread of worker `index` will not serve for a while: nobody wakes it,
  /// and its seat may be borrowed.
  void leave(std::size_t index) noexcept;

  static constexpr std::size_t no_seat = SIZE_MAX;
  /// Gives the calling thread, which is no worker of this queue, the seat of a
  /// worker that sleeps or is not there: the preferred one if it can be had,
  /// else any. Without a preference it is the one of the core that the thread
  /// is on. `no_seat` if all are taken. The thread makes a `worker` of that
  /// index while it serves.
  std::size_t borrow(std::size_t preferred = no_seat) noexcept;
  /// As `wait` without guests, for the borrower of seat `index`; null once
  /// `done` holds, which is asked before each job and whenever `wake_borrowers`
  /// is called.
  job* wait_until(std::size_t index, condition done) noexcept;
  /// Whether a borrower has seat `index`. A worker that is awake and has its
  /// seat to itself keeps it.
  bool is_lent(std::size_t index) const noexcept;
  /// Call it after making something true that a borrower may wait for.
  void wake_borrowers() noexcept;
  /// Ends the loan of seat `index`.
  void give_back(std::size_t index) noexcept;

  /// Waits until each worker that is in `worker::run_chain` now has left it at
  /// least once: afterwards no worker touches a job that had run before the
  /// call and is in no list. Not from a worker.
  void quiesce() const noexcept;

private:
  friend class worker;
  struct state;
  std::unique_ptr<state> state_;
};

} // namespace troupe
