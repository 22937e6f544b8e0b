// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/base/ids.hpp>
#include <troupe/base/spin.hpp>

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string_view>
#include <vector>

namespace troupe {

class job_queue;

/// How much is recorded. Each level includes the ones before it.
enum class trace_level : std::uint8_t {
  off,
  steps,    ///< steps, feeds, fetches, failures
  ops,      ///< when ops run, on which worker; memory; collectives
  messages, ///< every readiness message
};

std::string_view to_string(trace_level level) noexcept;
/// Throws error(invalid_argument) for a text that is no level.
trace_level parse_trace_level(std::string_view text);

enum class event_kind : std::uint8_t {
  step_begin,
  step_end,
  feed,  ///< the host passes in variable `from`; `amount`: bytes
  fetch, ///< the caller takes the value that op `from` copied; `amount`: bytes
  failure,    ///< `from` made the step fail
  run_begin,  ///< `from` begins to run
  run_end,    ///< `from` has run or was launched
  completion, ///< a pending launch of `from` is complete
  /// `from` runs on a worker other than `amount`, which made it ready
  hand_over,
  help_begin,  ///< an idle worker begins to run parts of `from`
  help_end,    ///< the idle worker has run the last remaining part
  arrival,     ///< the value `to` of rank `amount` has arrived at `from`
  merge_begin, ///< collective `from` has all values and begins to merge
  merge_end,   ///< collective `from` has merged the values
  /// `from` wrote the first version of temporary `to`: `amount` bytes
  allocation,
  /// `from` freed temporary `to`, named by its first version: `amount` bytes
  deallocation,
  /// sent by `from` (`no_handle`: a start) to `to`, which counts it for `step`
  message,
};

std::string_view to_string(event_kind kind) noexcept;

/// A recorded event.
struct trace_event {
  std::uint64_t time = 0; ///< in ticks (base/spin.hpp)
  std::uint64_t amount = 0;
  handle_id from = no_handle;
  handle_id to = no_handle;
  std::uint32_t step = 0; ///< low 32 bits of the step number
  /// The worker that recorded it; `recorder::no_worker`: another thread.
  std::uint16_t worker = 0;
  event_kind kind = event_kind::step_begin;
};
static_assert(sizeof(trace_event) == 32);

/// A ring buffer of the latest events of one thread. Only that thread writes.
///
/// Memory order: an event's words are stored with release and loaded with
/// acquire. A reader that sees a word of a newer event therefore also sees the
/// newer head, and drops its copy. On x86 both are ordinary moves.
class event_ring {
public:
  /// @param capacity in events, a power of two
  explicit event_ring(std::size_t capacity)
    : mask_(capacity - 1), events_(std::make_unique<slot[]>(capacity)) {}

  /// Appends an event. Called by the ring's thread only.
  void write(const trace_event& e) noexcept {
    const auto words = std::bit_cast<std::array<std::uint64_t, 4>>(e);
    const auto head = head_.load(std::memory_order_relaxed);
    auto& to = events_[head & mask_];
    for (std::size_t i = 0; i < words.size(); ++i)
      to[i].store(words[i], std::memory_order_release);
    head_.store(head + 1, std::memory_order_release);
  }
  /// Appends to `into` the events written since the last call. Returns how many
  /// events were overwritten before they could be read. One reader at a time.
  std::uint64_t take(std::vector<trace_event>& into);

private:
  using slot = std::array<std::atomic<std::uint64_t>, 4>;

  std::uint64_t mask_;
  std::unique_ptr<slot[]> events_;
  alignas(64) std::atomic<std::uint64_t> head_{0}; // events written
  std::uint64_t taken_ = 0;                        // events read
};

/// Records what happens while a graph runs. Each worker writes to its own ring
/// without locks. All other threads share one ring. A full ring overwrites its
/// oldest events and counts them.
///
/// A recorder that was always `off` holds no memory. While it is `off`,
/// recording costs one load.
///
/// Thread rule: `record` and `wants` from any thread, but only a worker's own
/// thread may record under the worker's number. `set_level` and `take` from any
/// thread; a lock serializes them.
class recorder {
public:
  /// `trace_event::worker` of threads that are no workers.
  static constexpr std::uint16_t no_worker = UINT16_MAX;
  /// How many of its latest events a ring keeps.
  static constexpr std::size_t default_events_per_ring = std::size_t{1} << 15;

  /// @param queue the queue whose workers get rings; must outlive the recorder
  explicit recorder(const job_queue& queue,
                    std::size_t events_per_ring = default_events_per_ring);
  recorder(const recorder&) = delete;
  recorder& operator=(const recorder&) = delete;

  /// Takes effect at once, even while steps run. The first level above `off`
  /// allocates the rings.
  void set_level(trace_level level);
  /// The current level. Any thread.
  trace_level level() const noexcept {
    return level_.load(std::memory_order_relaxed);
  }
  /// True if events of level `least` are currently recorded. Any thread.
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
  /// Records an event with the current time in the calling thread's ring.
  void record(event_kind kind, handle_id from, step_id step,
              std::uint64_t amount = 0, handle_id to = no_handle) noexcept;

  /// The same, but only if the level is at least `least`.
  void record_if(trace_level least, event_kind kind, handle_id from,
                 step_id step, std::uint64_t amount = 0) noexcept {
    if (wants(least))
      record(kind, from, step, amount);
  }

  /// Returns the events since the last call, ordered by time. `lost` grows by
  /// the number of events that were overwritten before this call.
  std::vector<trace_event> take();
  /// Number of events that were overwritten before `take` could return them.
  std::uint64_t lost() const noexcept { return lost_; }

  /// Nanoseconds per tick of the events' clock, measured since the recorder was
  /// made.
  double ns_per_tick() const noexcept;

private:
  void record_of_other(const trace_event& e) noexcept;

  const job_queue& queue_;
  std::size_t events_per_ring_;
  std::atomic<trace_level> level_{trace_level::off};
  // Guarded by `level_`: set before the level is first raised (release), read
  // after an acquire load has found the level raised.
  // one per worker; the last is for other threads
  std::vector<std::unique_ptr<event_ring>> rings_;
  spin_flag others_; // guards writes to the last ring
  std::mutex mutex_; // guards `set_level` and `take`
  std::uint64_t lost_ = 0;
  std::uint64_t first_ticks_;
  std::uint64_t first_ns_;
};

} // namespace troupe
