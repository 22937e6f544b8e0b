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
inline constexpr std::uint32_t short_job_ticks = 1024;
/// Unless it is still busy with the same ones after so long.
inline constexpr std::uint64_t patience_ns = 2'000;

/// The jobs of one worker: two priorities, and one job that it was given while
/// it looked for some.
class ready_lists {
public:
  bool empty() const noexcept {
    return given_.load(std::memory_order_relaxed) == nullptr && high_.empty()
           && normal_.empty();
  }
  /// Puts `j` where a worker that looks for a job finds it soonest: one cache
  /// line goes from core to core, where a list takes three.
  ///
  /// Memory order: release; who takes it acquires.
  void give(job& j, job_priority priority) noexcept {
    job* none = nullptr;
    if (!given_.compare_exchange_strong(none, &j, std::memory_order_release,
                                        std::memory_order_relaxed))
      push(j, priority);
  }
  void push(job& j, job_priority priority) noexcept {
    of(priority).push_newest(&j);
  }
  void push_oldest(job& j, job_priority priority) noexcept {
    of(priority).push_oldest(&j);
  }
  job* take_newest() noexcept {
    if (auto* j = take_given())
      return j;
    auto* j = high_.take_newest();
    return j ? j : normal_.take_newest();
  }
  job* take_oldest() noexcept {
    if (auto* j = take_given())
      return j;
    auto* j = high_.take_oldest();
    return j ? j : normal_.take_oldest();
  }

private:
  job* take_given() noexcept {
    return given_.load(std::memory_order_relaxed)
             ? given_.exchange(nullptr, std::memory_order_acquire)
             : nullptr;
  }
  ready_list<job>& of(job_priority priority) noexcept {
    return priority == job_priority::high ? high_ : normal_;
  }

  alignas(64) std::atomic<job*> given_{nullptr};
  alignas(64) ready_list<job> high_;
  ready_list<job> normal_;
};

/// A worker's place: its jobs and who serves them.
struct alignas(64) worker_place {
  ready_lists jobs;
  alignas(64) worker_seat seat;
  /// Odd while in run_chain. Written release by the server, read acquire by
  /// quiesce: who sees it even or changed sees all that the chain did.
  alignas(64) std::atomic<std::uint64_t> epoch{0};
  /// How long a job took lately, in ticks; 0: not known. A hint for others.
  std::atomic<std::uint32_t> pace{0};
  /// Grows every few jobs, when they are timed. A hint for others.
  std::atomic<std::uint32_t> progress{0};
  // The server's: looks for work; jobs run since the oldest one had its turn.
  std::uint32_t looks = 0;
  std::uint32_t jobs_since_oldest = 0;

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
  /// `now`. Watches one worker that has jobs at a time; the one that is asked
  /// about next follows when that one has moved on.
  bool is_stuck(const worker_place& w, std::uint64_t now) noexcept {
    if (watched_ && watched_ != &w && !watched_->jobs.empty())
      return false;
    const auto progress = w.progress.load(std::memory_order_relaxed);
    if (watched_ != &w)
      begin(&w, progress, now);
    else if (progress_ != progress)
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
