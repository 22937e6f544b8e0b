// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/base/job_queue.hpp>
#include <troupe/base/ready_list.hpp>
#include <troupe/base/worker_seat.hpp>

#include <algorithm>
#include <atomic>
#include <cstdint>

namespace troupe {

/// A worker whose jobs are shorter than this (in `ticks`, of which there are
/// two to five in a nanosecond) gets to the next one before another could have
/// fetched it: a hand-over moves half a dozen cache lines from core to core.
inline constexpr std::uint32_t short_job_ticks = 512;
/// Unless it is still busy with the same ones after so long.
inline constexpr std::uint64_t patience_ns = 2'000;

/// Where a worker that looks for a job can be given one: it is *open* while the
/// worker looks, and takes one job.
///
/// Thread rule: `open`, `poll` and `close` by the worker's server, the others
/// from any thread. Memory order: who gives a job releases, who gets it
/// acquires; that the place is open says nothing else.
class job_slot {
public:
  void open() noexcept { job_.store(open_mark(), std::memory_order_relaxed); }

  /// False if it is closed or has a job.
  bool give(job& j) noexcept {
    auto* expected = open_mark();
    return job_.compare_exchange_strong(expected, &j, std::memory_order_release,
                                        std::memory_order_relaxed);
  }

  /// The job that was given, if there is one; the place is open again. It
  /// writes each time, so that the cache line comes with the job in one go, to
  /// be written, where a look would fetch it first to be read.
  job* poll() noexcept {
    return job_in(job_.exchange(open_mark(), std::memory_order_acquire));
  }

  /// As `poll`, but nobody gives any more.
  job* close() noexcept {
    return job_in(job_.exchange(nullptr, std::memory_order_acquire));
  }

  /// What the server has not come for; the place is open again.
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
  /// Odd while in a chain. Written release by the server, read acquire by
  /// quiesce: who sees it even or changed sees all that the chain did.
  alignas(64) std::atomic<std::uint64_t> epoch{0};
  // The server's: looks for work; jobs run since the oldest one had its turn;
  // whom it gave a job last.
  std::uint32_t looks = 0;
  std::uint32_t jobs_since_oldest = 0;
  std::uint32_t partner = 0;
  /// How long a job took lately, in ticks; 0: not known. A hint for others.
  alignas(64) std::atomic<std::uint32_t> pace{0};
  /// Grows every few jobs, when they are timed. A hint for others.
  std::atomic<std::uint32_t> progress{0};

  /// By the server, as it enters a chain and as it leaves it.
  void turn() noexcept {
    epoch.store(epoch.load(std::memory_order_relaxed) + 1,
                std::memory_order_release);
  }

  /// By who has no other job than to wait for one: the oldest, or what the
  /// server was given and has not come for.
  job* take_for_other() noexcept {
    auto* j = jobs.take_oldest();
    return j ? j : slot.steal();
  }

  /// By the server: the newest, or the oldest if it is its turn.
  job* take_own() noexcept {
    if (jobs_since_oldest < worker::chain_limit)
      return jobs.take_newest();
    jobs_since_oldest = 0;
    return jobs.take_oldest();
  }

  /// By the server: `count` jobs have taken so long together.
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

  /// By any thread that found it stuck: the job that it runs, if it does, is a
  /// long one.
  void was_stuck() noexcept {
    if (epoch.load(std::memory_order_relaxed) % 2 != 0)
      pace.store(short_job_ticks, std::memory_order_relaxed);
  }

  bool has_short_jobs() const noexcept {
    const auto ticks_each = pace.load(std::memory_order_relaxed);
    return ticks_each > 0 && ticks_each < short_job_ticks;
  }
};

/// Tells workers that come to their jobs soon from one that is held up by a
/// long one. One thread's.
class place_watch {
public:
  /// Whether the worker has been in the same jobs since `patience_ns`, at time
  /// `now`. Watches one worker at a time; the one that is asked about next
  /// follows when that one has moved on, or has been stuck for as long again.
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
