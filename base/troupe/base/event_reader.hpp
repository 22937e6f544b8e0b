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
  enum class start {
    now,    ///< with the next event that is recorded
    oldest, ///< with the first event of all; those overwritten count as lost
  };

  /// @param from must outlive the last call of `take`
  /// @param up_to events of higher levels, which others asked for, are dropped
  explicit event_reader(recorder& from, start where = start::now,
                        trace_level up_to = trace_level::messages);

  /// Returns the events since the last call, ordered by time.
  std::vector<trace_event> take();
  /// Number of events, of any level, that were overwritten before `take` could
  /// return them.
  std::uint64_t lost() const noexcept { return lost_; }

private:
  recorder* from_;
  trace_level up_to_;
  std::vector<std::uint64_t> next_; // by ring: the number of the next event
  std::uint64_t lost_ = 0;
};

} // namespace troupe
