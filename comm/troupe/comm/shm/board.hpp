// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/base/error.hpp>
#include <troupe/comm/letter.hpp>
#include <troupe/comm/shm/process_line.hpp>
#include <troupe/comm/shm/pulse.hpp>
#include <troupe/kernels/memory/size_class.hpp>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace troupe::comm::shm {

// What the processes of a group share besides the values. All of it lies in one
// segment, which process 0 makes.
//
// Memory order. A rank writes its letter and its values, then arrives with
// acq_rel. The rank that arrives last thus sees the letters and values of all.
// It writes the plan of the call, then sets the state with release. Whoever
// reads the state with acquire sees everything before it. Parts are counted
// down in `to_do` with acq_rel, so the thread that ends the last part sees the
// results of all parts before it sets the next state. A slot's next call begins
// with a release store of `number`.
//
// Letters and values are read only by threads that `to_do` counts: once a call
// is complete, ranks reuse them.

/// Number of calls that the fastest rank can be ahead of the slowest.
inline constexpr std::size_t call_slots = 64;
/// Longest text of an error.
inline constexpr std::size_t max_failure_bytes = 2048;

/// The stages of a call. Not every call passes through all of them, but none
/// goes back.
enum class call_state : std::uint8_t {
  gathering,  ///< not all ranks have made it, or the last one makes the plan
  failing,    ///< a rank writes why it fails
  converting, ///< ranks replace values in other layouts by plain ones
  adding,     ///< anybody adds parts
  copying,    ///< ranks that gave no value, or get rows, copy their result
  complete,
  failed,
};

/// Which ranks have made a call, and its state. Both are in one word, so the
/// rank that arrives last knows that nobody can fail the call any more.
class call_progress {
public:
  struct value {
    call_state state;
    rank_mask ranks;
  };

  value now() const noexcept {
    return split(word_.load(std::memory_order_acquire));
  }

  /// Adds a rank. Returns the value before.
  value arrive(std::size_t rank) noexcept {
    return split(word_.fetch_or(bit_of(rank), std::memory_order_acq_rel));
  }
  /// Takes a rank out again. False if all have arrived.
  bool take_back(std::size_t rank, rank_mask everybody) noexcept;
  /// Changes `gathering` to `failing`. False if the state is another one, or if
  /// all ranks have arrived.
  bool begin_failing(rank_mask everybody) noexcept;
  /// Sets the state. Only the rank that arrived last may call it, or the one
  /// that called `begin_failing`, or who ended the last part or copy.
  void set(call_state next, rank_mask everybody) noexcept;
  /// For the next call. Relaxed: `call_slot::number` publishes it.
  void reset() noexcept { word_.store(0, std::memory_order_relaxed); }

private:
  static constexpr rank_mask all_bits = (rank_mask{1} << max_ranks) - 1;
  static value split(std::uint64_t word) noexcept {
    return {static_cast<call_state>(word >> max_ranks), word & all_bits};
  }
  static std::uint64_t join(call_state state, rank_mask ranks) noexcept {
    return static_cast<std::uint64_t>(state) << max_ranks | ranks;
  }

  std::atomic<std::uint64_t> word_{0};
};

/// An error, written by one rank and read by others.
class posted_error {
public:
  /// Writes it. Drops the call stack and then the end of the message if it is
  /// too long.
  void post(const error& why) noexcept;
  error read() const;

private:
  std::uint32_t bytes_ = 0;
  std::array<char, max_failure_bytes> text_;
};

/// Where a rank's letter lies in its process's segment, and its hash.
struct letter_place {
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
  std::uint64_t hash = 0;
};

/// A call, from the first rank that makes it to the last that has its result.
/// What threads look at all the time has a line of its own.
struct alignas(cache_line) call_slot {
  call_progress progress;

  /// The call that uses the slot, or will be the next to use it.
  alignas(cache_line) std::atomic<std::uint64_t> number{0};
  /// Ranks that are done with it. The last one prepares the slot for its next
  /// call.
  std::atomic<rank_mask> over{0};
  /// Set by the rank that writes `failure`.
  std::atomic<bool> has_failure{false};
  /// Set by a rank that waits until its call can use the slot.
  std::atomic<bool> wanted{false};

  /// The next part that nobody has begun, if less than `parts`.
  alignas(cache_line) std::atomic<std::uint64_t> next_part{0};
  /// Conversions, parts or copies of the current stage that have not ended.
  alignas(cache_line) std::atomic<std::uint64_t> to_do{0};
  ///@{
  /// The plan, written by the last rank that arrives.
  std::uint64_t parts = 0;
  rank_mask readers = 0; ///< ranks that copy their result
  ///@}

  alignas(cache_line) std::array<letter_place, max_ranks> letters;
  posted_error failure;
};

struct alignas(cache_line) rank_line {
  /// Number of calls that the rank has made. Calls that it took back when it
  /// left are not counted.
  std::atomic<std::uint64_t> made{0};
  /// 0, or how many ranks had left when this one did, itself included. Set
  /// after `made` and `reason`.
  std::atomic<std::uint32_t> left{0};
  posted_error reason;
};

struct board {
  /// Number of ranks that have left or are about to.
  std::atomic<std::uint32_t> departures{0};
  /// Counts what is not seen in a call's state: ranks that leave, and slots
  /// that are passed on to a rank that waits for one.
  alignas(cache_line) std::atomic<std::uint32_t> news{0};
  std::array<process_line, max_ranks> processes;
  std::array<pulse, max_ranks> pulses; // by process
  std::array<rank_line, max_ranks> ranks;
  std::array<call_slot, call_slots> calls;

  board() noexcept;

  call_slot& slot_of(std::uint64_t number) noexcept {
    return calls[number % call_slots];
  }
};

static_assert(std::atomic<std::uint64_t>::is_always_lock_free
              && std::atomic<std::uint32_t>::is_always_lock_free
              && std::atomic<bool>::is_always_lock_free);

} // namespace troupe::comm::shm
