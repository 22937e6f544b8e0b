// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/base/actor_table.hpp>
#include <troupe/base/event_ring.hpp>
#include <troupe/base/ids.hpp>
#include <troupe/base/spin.hpp>
#include <troupe/base/trace_event.hpp>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

namespace troupe {

class job_queue;

/// Records what happens while a graph runs. Each worker writes to its own ring
/// without locks. All other threads share one ring. A full ring overwrites its
/// oldest events. An `event_reader` reads them.
///
/// The level is the highest that a living `level_request` asks for. A recorder
/// that was always `off` holds no memory. While it is `off`, recording costs
/// one load.
///
/// Thread rule: any thread, but only a worker's own thread may record under the
/// worker's number.
class recorder {
public:
  /// `trace_event::worker` of threads that are no workers.
  static constexpr std::uint16_t no_worker = UINT16_MAX;
  /// How many of its latest events a ring keeps: 8 MiB of addresses.
  static constexpr std::size_t default_events_per_ring = std::size_t{1} << 18;

  /// @param queue the queue whose workers get rings; must live while the level
  ///   is raised, and when it is raised for the first time
  explicit recorder(const job_queue& queue,
                    std::size_t events_per_ring = default_events_per_ring);
  recorder(const recorder&) = delete;
  recorder& operator=(const recorder&) = delete;

  /// The current level.
  trace_level level() const noexcept {
    return level_.load(std::memory_order_relaxed);
  }
  /// True if events of level `least` are currently recorded.
  bool wants(trace_level least) const noexcept { return level() >= least; }

  /// Records an event with the given time in the ring of `worker`.
  void record(event_kind kind, std::uint16_t worker, handle_id from,
              handle_id to, step_id step, std::uint64_t amount,
              std::uint64_t time) noexcept {
    if (level_.load(std::memory_order_acquire) == trace_level::off)
      return;
    const trace_event e{
      time, amount, from, to, static_cast<std::uint32_t>(step), worker, kind};
    if (worker + std::size_t{1} < rings_.size())
      rings_[worker]->write(e);
    else
      record_of_other(e);
  }
  /// The ring of `worker`; null if there are no rings yet, or for `no_worker`.
  /// Only that worker's thread writes to it. It may finish what it records when
  /// the level becomes off.
  event_ring* ring_of(std::uint16_t worker) const noexcept {
    const auto made = rings();
    return worker + std::size_t{1} < made.size() ? made[worker].get() : nullptr;
  }
  /// Records an event with the current time in the calling thread's ring.
  void record(event_kind kind, handle_id from, step_id step,
              std::uint64_t amount = 0, handle_id to = no_handle) noexcept;

  /// The same, but only if the level is high enough for this kind.
  void record_if_wanted(event_kind kind, handle_id from, step_id step,
                        std::uint64_t amount = 0) noexcept {
    if (wants(level_of(kind)))
      record(kind, from, step, amount);
  }

  ///@{ The application's actors that record their messages here.
  actor_table& actors() noexcept { return actors_; }
  const actor_table& actors() const noexcept { return actors_; }
  ///@}
  /// Nanoseconds per tick of the events' clock, measured since the recorder was
  /// made.
  double ns_per_tick() const noexcept;

private:
  friend class event_reader;
  friend class level_request;
  using ring_list = std::vector<std::unique_ptr<event_ring>>;

  void record_of_other(const trace_event& e) noexcept;
  void replace_request(trace_level before, trace_level now);
  /// Empty until the level is raised for the first time.
  std::span<const std::unique_ptr<event_ring>> rings() const noexcept;

  const job_queue& queue_;
  std::size_t events_per_ring_;
  std::atomic<trace_level> level_{trace_level::off};
  // One per worker; the last is for other threads. Written once, before
  // `has_rings_` is set and before the level is first raised (both release).
  // Read after an acquire load has found one of them.
  ring_list rings_;
  std::atomic<bool> has_rings_{false};
  spin_flag others_;                      // guards writes to the last ring
  std::mutex mutex_;                      // guards changes of the level
  std::array<std::size_t, 4> requests_{}; // number of living ones by level
  std::uint64_t first_ticks_;
  std::uint64_t first_ns_;
  actor_table actors_;
};

/// Asks a recorder for a level, from its construction until its destruction.
/// Takes effect at once, even while steps run. The recorder may record more,
/// because others ask for more.
///
/// Thread rule: one thread at a time; different requests on different threads.
class level_request {
public:
  /// The first level above `off` makes the recorder's rings. Throws
  /// std::bad_alloc if there are no addresses for them.
  /// @param of must outlive the object
  level_request(recorder& of, trace_level level);
  ~level_request();
  level_request(const level_request&) = delete;
  level_request& operator=(const level_request&) = delete;

  /// Asks for another level from now on. Throws as the constructor does, and
  /// then changes nothing; does not throw for `off`.
  void change(trace_level level);

private:
  recorder& of_;
  trace_level level_ = trace_level::off;
};

} // namespace troupe
