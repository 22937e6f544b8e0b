// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/base/job_queue.hpp>
#include <troupe/base/ready_list.hpp>
#include <troupe/base/worker_seat.hpp>

#include <algorithm>
#include <atomic>
#include <cstdint>

#include <sys/types.h>

namespace troupe {

/// A worker whose jobs are shorter than this (in `ticks`, two to five per
/// nanosecond) reaches the next job before another worker could fetch it: a
/// hand-over moves half a dozen cache lines between cores.
inline constexpr std::uint32_t short_job_ticks = 512;
/// A worker that is still busy with the same jobs after this time counts as
/// stuck.
inline constexpr std::uint64_t patience_ns = 2'000;

/// A slot through which a searching worker is given one job. It is *open* while
/// the worker searches.
///
/// Thread rule: `open`, `poll` and `close` on the worker's server, the others
/// from any thread. Memory order: giving a job is a release, taking it is an
/// acquire. An open slot publishes nothing else.
class job_slot {
public:
  void open() noexcept { job_.store(open_mark(), std::memory_order_relaxed); }

  /// False if it is closed or has a job.
  bool give(job& j) noexcept {
    auto* expected = open_mark();
    return job_.compare_exchange_strong(expected, &j, std::memory_order_release,
                                        std::memory_order_relaxed);
  }

  /// Takes the given job, if there is one. The slot is then open again. `poll`
  /// always writes, so that the cache line is fetched once, for writing; a read
  /// would fetch it first for reading.
  job* poll() noexcept {
    return job_in(job_.exchange(open_mark(), std::memory_order_acquire));
  }

  /// Like `poll`, but the slot is then closed.
  job* close() noexcept {
    return job_in(job_.exchange(nullptr, std::memory_order_acquire));
  }

  /// Takes a job that the server has not picked up. The slot is then open
  /// again.
  job* steal() noexcept {
    auto* seen = job_in(job_.load(std::memory_order_relaxed));
    const auto taken = seen
                       && job_.compare_exchange_strong(
                         seen, open_mark(), std::memory_order_acquire,
                         std::memory_order_relaxed);
    return taken ? seen : nullptr;
  }

private:
  static job* open_mark() noexcept {
    return reinterpret_cast<job*>(std::uintptr_t{1});
  }
  static job* job_in(job* content) noexcept {
    return content == open_mark() ? nullptr : content;
  }

  std::atomic<job*> job_{nullptr};
};

/// The jobs of one worker in two priorities.
class ready_lists {
public:
  bool empty() const noexcept { return high_.empty() && normal_.empty(); }
  void push(job& j, job_priority priority) noexcept {
    of(priority).push_newest(&j);
  }
  void push_oldest(job& j, job_priority priority) noexcept {
    of(priority).push_oldest(&j);
  }
  job* take_newest() noexcept {
    auto* j = high_.take_newest();
    return j ? j : normal_.take_newest();
  }
  job* take_oldest() noexcept {
    auto* j = high_.take_oldest();
    return j ? j : normal_.take_oldest();
  }

private:
  ready_list<job>& of(job_priority priority) noexcept {
    return priority == job_priority::high ? high_ : normal_;
  }

  alignas(64) ready_list<job> high_;
  ready_list<job> normal_;
};

/// A worker's place: its jobs and who serves them.
struct alignas(64) worker_place {
  ready_lists jobs;
  alignas(64) job_slot slot;
  alignas(64) worker_seat seat;
  /// Odd while in a chain. Written with release by the server, read with
  /// acquire by `quiesce`: a thread that sees it even or changed also sees
  /// everything that the chain did.
  alignas(64) std::atomic<std::uint64_t> epoch{0};
  // Owned by the server: number of looks for work; guests since the last job;
  // jobs since it last took its oldest job; the worker to which it last gave a
  // job.
  std::uint32_t looks = 0;
  std::uint32_t guests_in_row = 0;
  std::uint32_t jobs_since_oldest = 0;
  std::uint32_t partner = 0;
  /// The thread of the latest server, as the system counts threads. Relaxed:
  /// nothing else is read by it.
  std::atomic<pid_t> thread{0};
  /// Recent duration of a job in ticks; 0: unknown. A hint for other workers.
  alignas(64) std::atomic<std::uint32_t> pace{0};
  /// Incremented every few jobs, when they are timed. A hint for other workers.
  std::atomic<std::uint32_t> progress{0};

  /// Called by the server when it enters a chain and when it leaves it.
  void turn() noexcept {
    epoch.store(epoch.load(std::memory_order_relaxed) + 1,
                std::memory_order_release);
  }

  /// Called by an idle worker. Takes the oldest job, or one that the server was
  /// given and has not picked up.
  job* take_for_other() noexcept {
    auto* j = jobs.take_oldest();
    return j ? j : slot.steal();
  }

  /// Called by the server. Takes the newest job, or the oldest if it is due.
  job* take_own() noexcept {
    if (jobs_since_oldest < worker::chain_limit)
      return jobs.take_newest();
    jobs_since_oldest = 0;
    return jobs.take_oldest();
  }

  /// Called by the server: `count` jobs took `ticks_in_all` in total.
  void took(std::uint32_t count, std::uint64_t ticks_in_all) noexcept {
    constexpr std::uint64_t longest = 1u << 20;
    const auto each = std::min(ticks_in_all / count, longest) + 1;
    const std::uint64_t before = pace.load(std::memory_order_relaxed);
    pace.store(
      static_cast<std::uint32_t>(before == 0 ? each : (3 * before + each) / 4),
      std::memory_order_relaxed);
    progress.store(progress.load(std::memory_order_relaxed) + 1,
                   std::memory_order_relaxed);
  }

  /// Called by any thread that found the worker stuck: its running job, if any,
  /// is long.
  void was_stuck() noexcept {
    if (epoch.load(std::memory_order_relaxed) % 2 != 0)
      pace.store(short_job_ticks, std::memory_order_relaxed);
  }

  bool has_short_jobs() const noexcept {
    const auto ticks_each = pace.load(std::memory_order_relaxed);
    return ticks_each > 0 && ticks_each < short_job_ticks;
  }
};

/// Distinguishes workers that reach their jobs soon from a worker that is
/// delayed by a long job. For use by one thread.
class place_watch {
public:
  /// True if, at time `now`, the worker has been in the same jobs for
  /// `patience_ns`. Watches one worker at a time. It switches to another worker
  /// once the watched one has made progress, or has been stuck for the same
  /// time again.
  bool is_stuck(const worker_place& w, std::uint64_t now) noexcept {
    const auto progress = w.progress.load(std::memory_order_relaxed);
    if (watched_ != &w) {
      if (!watched_ || now - since_ >= 2 * patience_ns)
        begin(&w, progress, now);
      return false;
    }
    if (progress_ != progress)
      watched_ = nullptr;
    return watched_ && now - since_ >= patience_ns;
  }

private:
  void begin(const worker_place* w, std::uint32_t progress,
             std::uint64_t now) noexcept {
    watched_ = w;
    progress_ = progress;
    since_ = now;
  }

  const worker_place* watched_ = nullptr;
  std::uint32_t progress_ = 0;
  std::uint64_t since_ = 0;
};

} // namespace troupe
