// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include <sys/types.h>

namespace troupe {

class job_queue;
class worker;
struct worker_place;

/// A job that a worker runs once per push. The caller of the push must keep it
/// alive until it has run.
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

/// The condition that a thread waits for while it runs jobs. Without a
/// function: none.
struct condition {
  bool (*holds_for)(void*) = nullptr;
  void* context = nullptr;

  bool holds() const { return holds_for && holds_for(context); }
};

/// A thread that runs jobs of a queue. The object is on that thread's stack.
class worker {
public:
  /// @param index number of this worker, less than the queue's number of
  /// workers
  worker(job_queue& queue, std::size_t index) noexcept;
  ~worker();
  worker(const worker&) = delete;
  worker& operator=(const worker&) = delete;

  job_queue& queue() const noexcept { return queue_; }
  std::size_t index() const noexcept { return index_; }

  /// The worker on this thread; null if there is none.
  static worker* current() noexcept { return current_; }
  /// The worker of `queue` on this thread; null if there is none.
  static worker* current_of(const job_queue& queue) noexcept {
    return current_ && &current_->queue_ == &queue ? current_ : nullptr;
  }

  /// Runs `j` and then, at once and on this thread, the first job that each job
  /// passes to `run_soon`. The first ready successor of an op thus finds its
  /// inputs in this core's cache. After `chain_limit` jobs, the worker's oldest
  /// job runs next. The chain ends if other users of the queue wait, or if
  /// `until` holds.
  void run_chain(job& j, condition until = {});

  /// Runs the ready job `j` soon. It becomes the next job of the chain. If
  /// there is already a next job, or no chain, it is pushed like any other job.
  void run_soon(job& j, job_priority priority = job_priority::normal) noexcept {
    if (next_ || timed_until_ == 0) {
      push(j, priority);
      return;
    }
    next_ = &j;
    next_priority_ = priority;
  }

  /// Runs `j` in this chain, after the next job and the jobs already kept,
  /// hidden from other workers. Meant for jobs that finish before another
  /// worker could fetch them. If jobs turn out to be longer, or the chain ends,
  /// `j` goes to this worker's list. If there is no chain, if `most_kept` jobs
  /// are already kept, or if jobs are not short, `j` is pushed like any other
  /// job. Only on this worker's thread.
  void keep(job& j) noexcept;
  static constexpr std::uint32_t most_kept = 8;

  /// Reports that the running job has done the work of `count` jobs since it
  /// began or since its last report. Used to estimate the duration of jobs.
  /// Only on this worker's thread.
  void did(std::uint32_t count) noexcept {
    untimed_ += count;
    if (untimed_ >= jobs_between_times_)
      time_jobs();
  }

  /// How many jobs, as long as the latest ones, take some microseconds: at
  /// least
  /// 1. Who runs many in a row looks for other work after so many. Only on this
  /// worker's thread.
  std::uint32_t jobs_between_looks() const noexcept {
    return jobs_between_times_;
  }

  /// True if this worker's jobs, including the running one, are so short that
  /// it reaches a new job before another worker could fetch it. Only on this
  /// worker's thread.
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

  static inline constinit thread_local worker* current_ = nullptr;

  job_queue& queue_;
  std::size_t index_;
  worker* outer_; // the worker of another queue on this thread
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
  std::uint64_t timed_until_ = 0; // in ticks; 0: no job is running
};

/// What a worker has found: a job, a guest, or neither.
struct found_work {
  job* work = nullptr;
  void* guest = nullptr;

  explicit operator bool() const noexcept { return work || guest; }
};

/// Something outside of a queue that leads to jobs, such as memory that other
/// processes write to. Workers that search for jobs also look there, so nobody
/// has to wake a thread.
///
/// Thread rule: any thread, concurrently.
class outside_work {
public:
  virtual ~outside_work() = default;
  /// A thread begins to call `look` all the time.
  virtual void begin_looking() noexcept = 0;
  /// Does what can be done now without waiting; it may push jobs.
  virtual void look() noexcept = 0;
  /// The thread stops. Looks once more, after this has become known.
  virtual void end_looking() noexcept = 0;
};

/// The ready jobs of a group of workers. Each worker has a *seat* with a list
/// of jobs in two priorities. One more list is for foreign threads and one for
/// guests.
///
/// A push gives the job directly to a searching worker, unless the pusher's own
/// jobs are so short that it would reach the job sooner itself. It wakes a
/// sleeper only if no worker is searching. Idle workers search for a short time
/// and then sleep.
///
/// A worker takes its own jobs newest first, because their data is in the
/// cache, and those of others oldest first. To prevent starvation, every second
/// look starts with the guests or the foreign list, in turn. After a chain's
/// length of jobs, a worker takes its own oldest job.
///
/// *Guests* can run only on the workers' own threads: they are the actors of
/// the actor system with which the queue shares its workers. The queue treats
/// them as opaque pointers. A guest must not wait for a long job, so there can
/// be a *stand-in*: a thread without a seat that takes guests while no worker
/// is free.
///
/// A thread that waits for the results of jobs can *borrow* the seat of a
/// sleeping worker and serve in its place. No thread then needs to be woken,
/// and no more threads run than there are seats.
///
/// Thread rule: `push`, `stop` and `borrow` from any thread. Functions with a
/// parameter `index` only on the thread that is currently worker `index`.
class job_queue {
public:
  explicit job_queue(std::size_t workers);
  ~job_queue();
  job_queue(const job_queue&) = delete;
  job_queue& operator=(const job_queue&) = delete;

  std::size_t workers() const noexcept;

  /// Adds `j` to the list of the calling worker, or of foreign threads.
  void push(job& j, job_priority priority = job_priority::normal) noexcept;
  /// Number of jobs pushed to the list of foreign threads, the only list that
  /// all workers share. Any thread.
  std::uint64_t foreign_pushes() const noexcept;
  /// Adds `j` to the list of worker `home`. It runs there unless another worker
  /// becomes idle first.
  void push_to(std::size_t home, job& j,
               job_priority priority = job_priority::normal) noexcept;
  /// Adds a guest.
  void push_guest(void* guest) noexcept;

  /// Adds the unfinished job `j` after all other jobs of the calling worker.
  void yield(job& j, job_priority priority = job_priority::normal) noexcept;
  /// A hint: true if there is work that worker `index` would take before
  /// stealing.
  bool others_wait(std::size_t index) const noexcept;

  /// Takes the next job for worker `index`; null if there is none anywhere.
  job* pop(std::size_t index) noexcept;
  /// Takes the next job or guest for worker `index`; sleeps until there is one.
  /// Returns nothing once the queue is stopped and has no jobs.
  found_work wait(std::size_t index) noexcept;
  /// Takes the oldest guest; null if there is none.
  void* pop_guest() noexcept;
  /// Takes the next guest for the stand-in; sleeps until there is one and no
  /// worker searches or sleeps. Returns null once the queue is stopped. On one
  /// thread, which is no worker of this queue.
  void* wait_for_guest() noexcept;

  /// Makes `wait` return nothing to all workers once no jobs are left.
  void stop() noexcept;
  /// Reverts `stop`. No worker may be in `wait`.
  void restart() noexcept;
  /// The thread of worker `index` stops serving for a while. It is not woken,
  /// and its seat can be borrowed.
  void leave(std::size_t index) noexcept;

  static constexpr std::size_t no_seat = SIZE_MAX;
  /// Gives the calling thread, which must not be a worker of this queue, the
  /// seat of a worker that is asleep or absent. The preferred seat is used if
  /// it is available, otherwise any. Without a preference, the seat of the
  /// thread's current core is preferred. Returns `no_seat` if none is
  /// available. While the thread serves, it must have a `worker` with that
  /// index.
  std::size_t borrow(std::size_t preferred = no_seat) noexcept;
  /// Like `wait` without guests, for the borrower of seat `index`. Returns null
  /// once `done` holds. `done` is checked before each job and whenever
  /// `wake_borrowers` is called.
  job* wait_until(std::size_t index, condition done) noexcept;
  /// True if a borrower has seat `index`. The seat of an awake worker cannot be
  /// borrowed.
  bool is_lent(std::size_t index) const noexcept;
  /// The number of the thread that serves seat `index` or served it last, as
  /// the system counts threads; 0 before any has. Any thread.
  pid_t thread_of(std::size_t index) const noexcept;
  /// Must be called after a condition that a borrower may wait for has become
  /// true.
  void wake_borrowers() noexcept;
  /// Ends the loan of seat `index`.
  void give_back(std::size_t index) noexcept;

  /// If true, idle workers also take jobs that their worker will soon reach
  /// because its jobs are short. A hint. Any thread.
  void share_short_jobs(bool yes) noexcept;

  ///@{
  /// Workers that search look at `outside`, too, until it is detached. False if
  /// something else is attached. After `detach` no worker uses it. Any thread,
  /// but `detach` not on a worker.
  bool attach(outside_work& outside) noexcept;
  void detach(outside_work& outside) noexcept;
  ///@}

  /// Waits until each worker that is now in `worker::run_chain` has left it at
  /// least once. Afterwards no worker accesses a job that had run before the
  /// call and is in no list. Must not be called on a worker.
  void quiesce() const noexcept;

private:
  friend class worker;
  struct state;
  std::unique_ptr<state> state_;
};

} // namespace troupe
