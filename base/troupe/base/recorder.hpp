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

/// How much is recorded; each level includes those before it.
enum class trace_level : std::uint8_t {
  off,
  steps,    ///< steps, feeds, fetches, failures
  ops,      ///< when ops run, on which worker; memory; collectives
  messages, ///< every readiness message that is sent
};

enum class event_kind : std::uint8_t {
  step_begin,
  step_end,
  feed,         ///< the host hands variable `from` over; `amount`: bytes
  fetch,        ///< the caller takes what op `from` copied; `amount`: bytes
  failure,      ///< `from` made the step fail
  run_begin,    ///< `from` runs
  run_end,      ///< `from` has run, or was launched
  completion,   ///< a pending launch of `from` is complete
  hand_over,    ///< `from` runs on another worker than made it ready (`amount`)
  help_begin,   ///< an idle worker begins to run parts of `from`
  help_end,     ///< it has run the last one that was left
  arrival,      ///< `to`, the value of rank `amount`, is there for `from`
  merge_begin,  ///< collective `from` has all values
  merge_end,    ///< and has merged them
  allocation,   ///< `from` has made temporary `to` of `amount` bytes
  deallocation, ///< `from` gives temporary `to` of `amount` bytes back
  message,      ///< from `from` (none: a start) to `to`, which counts it for
                ///< `step`
};

std::string_view to_string(event_kind kind) noexcept;

/// Something that happened.
struct trace_event {
  std::uint64_t time = 0; ///< in ticks (base/spin.hpp)
  std::uint64_t amount = 0;
  handle_id from = no_handle;
  handle_id to = no_handle;
  std::uint32_t step = 0; ///< the low half of its number
  /// Who recorded it; `recorder::no_worker`: a thread that is none.
  std::uint16_t worker = 0;
  event_kind kind = event_kind::step_begin;
};
static_assert(sizeof(trace_event) == 32);

/// The last events of one thread, and the only one that writes them.
///
/// Memory order. An event's words are stored release and loaded acquire: a
/// reader that sees a word of a newer event than it wanted also sees the head
/// that says so, and drops what it has copied. On x86 both are ordinary moves.
class event_ring {
public:
  /// @param capacity in events, a power of two
  explicit event_ring(std::size_t capacity)
    : mask_(capacity - 1), events_(std::make_unique<slot[]>(capacity)) {}

  /// By the ring's thread.
  void write(const trace_event& e) noexcept {
    const auto words = std::bit_cast<std::array<std::uint64_t, 4>>(e);
    const auto head = head_.load(std::memory_order_relaxed);
    auto& to = events_[head & mask_];
    for (std::size_t i = 0; i < words.size(); ++i)
      to[i].store(words[i], std::memory_order_release);
    head_.store(head + 1, std::memory_order_release);
  }
  /// Appends what was written since the last call; returns how many events were
  /// lost because they had been overwritten. By one reader at a time.
  std::uint64_t take(std::vector<trace_event>& into);

private:
  using slot = std::array<std::atomic<std::uint64_t>, 4>;

  std::uint64_t mask_;
  std::unique_ptr<slot[]> events_;
  alignas(64) std::atomic<std::uint64_t> head_{0}; // events written
  std::uint64_t taken_ = 0;                        // the reader's
};

/// Records what happens while a graph runs: a ring per worker, written without
/// locks, and one for all other threads. When a ring is full the oldest events
/// are overwritten, and counted.
///
/// At level `off` it has no memory, and who could record something pays one
/// relaxed load.
///
/// Thread rule: `record` and `wants` from any thread, a worker's number by the
/// thread that serves it; `set_level` and `take` from any thread, one at a time
/// by a lock.
class recorder {
public:
  static constexpr std::uint16_t no_worker = UINT16_MAX;
  static constexpr std::size_t default_events_per_ring = std::size_t{1} << 15;

  /// @param queue whose workers have rings of their own; outlives it
  explicit recorder(const job_queue& queue,
                    std::size_t events_per_ring = default_events_per_ring);
  recorder(const recorder&) = delete;
  recorder& operator=(const recorder&) = delete;

  /// Takes effect at once, while steps run. Takes memory for the rings the
  /// first time.
  void set_level(trace_level level);
  /// How much is recorded now. Any thread.
  trace_level level() const noexcept {
    return level_.load(std::memory_order_relaxed);
  }
  /// Whether events of level `least` are recorded now. Any thread.
  bool wants(trace_level least) const noexcept { return level() >= least; }

  /// Records an event at `time`, in the ring of `worker`.
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
  /// Now, by whichever thread calls.
  void record(event_kind kind, handle_id from, step_id step,
              std::uint64_t amount = 0, handle_id to = no_handle) noexcept;

  /// The same if the level is `least` or higher.
  void record_if(trace_level least, event_kind kind, handle_id from,
                 step_id step, std::uint64_t amount = 0) noexcept {
    if (wants(least))
      record(kind, from, step, amount);
  }

  /// Events since the last call, ordered by time; `lost` grows by those that
  /// were overwritten before they could be taken.
  std::vector<trace_event> take();
  /// Events that were overwritten before `take` took them.
  std::uint64_t lost() const noexcept { return lost_; }

  /// How long a tick of the events' clock is, measured since the recorder was
  /// made.
  double ns_per_tick() const noexcept;

private:
  void record_of_other(const trace_event& e) noexcept;

  const job_queue& queue_;
  std::size_t events_per_ring_;
  std::atomic<trace_level> level_{trace_level::off};
  // Behind `level_`: set before it is first raised (release), read by who found
  // it raised (acquire).
  std::vector<std::unique_ptr<event_ring>> rings_; // by worker; others last
  spin_flag others_; // guards the last ring's writing
  std::mutex mutex_; // guards levels and taking
  std::uint64_t lost_ = 0;
  std::uint64_t first_ticks_;
  std::uint64_t first_ns_;
};

} // namespace troupe
