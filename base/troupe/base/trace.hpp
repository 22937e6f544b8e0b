// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/base/ids.hpp>

#include <cstdint>

namespace troupe {

/// What a trace event records of an actor's life.
enum class trace_kind : std::uint8_t {
  message,    ///< a readiness message was delivered along an edge
  ready,      ///< the last message that an op waited for has arrived
  launch,     ///< an op was launched on its stream
  completion, ///< what was launched has finished
  help,       ///< an idle worker begins to run parts of an op
  helped,     ///< it has run the last one that was left
  release,    ///< the last reader of a buffer is done
};

/// One event, small enough to copy into a ring without looking at it.
struct trace_event {
  trace_kind kind;
  handle_id from; ///< sender, or the op itself, or the one that is helped
  handle_id to;   ///< receiver of a message, else `no_handle`
  step_id step;
  std::uint64_t time_ns; ///< `now_ns()` when it happened
};

/// Receives every message, launch and completion of an executor.
///
/// The hook where a trace ring attaches. An executor without a sink pays one
/// predictable branch per event and reads no clock.
///
/// Thread rule: `record` is called by any worker, concurrently.
class trace_sink {
public:
  virtual ~trace_sink() = default;
  virtual void record(const trace_event& event) noexcept = 0;
};

} // namespace troupe
