// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/comm/engine/neighbours.hpp>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace troupe::comm {

/// How far the processes of a host are with calls that they merge together.
/// Each counts what it has done, in memory that all of them map; the others
/// wait for a count. All processes do the same calls in the same order, so each
/// knows which count it waits for.
///
/// Thread rule: `stop` from any thread, all else from one thread at a time.
class nearby_signals {
public:
  /// What a process tells.
  enum class kind : std::uint8_t {
    places, ///< where its values and results of a call lie
    rows,   ///< where rows of another host lie, which it has received
    part,   ///< a step is complete in its result
    left,   ///< it reads no more of the call
  };

  /// @param with must outlive the object
  explicit nearby_signals(neighbours& with);
  nearby_signals(const nearby_signals&) = delete;
  nearby_signals& operator=(const nearby_signals&) = delete;

  /// Tells all others, who then see everything that this thread has written
  /// before. Never waits.
  void tell(kind what) noexcept;
  /// Tells `kind::places`: they lie at this place of this process's memory.
  /// They must stay there until the others have left the call.
  void tell_places(std::uint64_t place) noexcept;

  /// The number of what neighbour `of` tells next of this kind: 1, 2, ...
  std::uint64_t next(std::size_t of, kind what) noexcept {
    return ++awaited_[of][static_cast<std::size_t>(what)];
  }
  /// Returns when the neighbour has told so many of the kind. Throws
  /// error(peer_failure) after `stop`.
  void wait(std::size_t of, kind what, std::uint64_t number);
  /// Where the places lie that the neighbour has told last.
  std::uint64_t places_of(std::size_t of) const noexcept;

  /// Ends all waits, now and later.
  void stop() noexcept;

private:
  static constexpr std::size_t kinds = 4;

  bool has_told(std::size_t of, kind what, std::uint64_t number) const noexcept;
  bool look_for(std::size_t of, kind what, std::uint64_t number) noexcept;

  neighbours& with_;
  /// By neighbour and kind: the last number that `next` returned.
  std::vector<std::array<std::uint64_t, kinds>> awaited_;
  /// seq_cst with the bell of this process: a thread that falls asleep sees it,
  /// or hears the bell.
  std::atomic<bool> is_stopped_{false};
};

} // namespace troupe::comm
