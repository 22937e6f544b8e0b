// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/base/recorder.hpp>
#include <troupe/base/trace_event.hpp>

#include <cstdint>
#include <vector>

namespace troupe {

/// Reads the events of a recorder, from its own position in each ring. Any
/// number of readers read the same events. They disturb neither each other nor
/// the threads that record. Events that are overwritten before this reader has
/// read them are lost to it.
///
/// A reader raises no level: see `level_request`.
///
/// Thread rule: one thread at a time; different readers on different threads.
class event_reader {
public:
  /// With which event a reader begins.
  enum class start {
    now, ///< with the next event that is recorded
    /// With all that the rings hold, from the time on since which none of them
    /// has overwritten an event. What came before counts as lost.
    oldest,
  };

  /// @param from must outlive the last call of `take`
  /// @param up_to events of higher levels, which others asked for, are dropped
  explicit event_reader(const recorder& from, start where = start::now,
                        trace_level up_to = trace_level::messages);

  /// Returns the events since the last call, ordered by time.
  std::vector<trace_event> take();
  /// Number of events, of any level, that were overwritten before `take` could
  /// return them, or that came before those.
  std::uint64_t lost() const noexcept { return lost_; }

private:
  const recorder* from_;
  trace_level up_to_;
  std::vector<std::uint64_t> next_; // by ring: the number of the next event
  std::uint64_t lost_ = 0;
  bool begins_with_oldest_; // until the first call of `take`
};

} // namespace troupe
