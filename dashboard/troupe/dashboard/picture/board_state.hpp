// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/actors/steps/run_pace.hpp>
#include <troupe/base/ids.hpp>
#include <troupe/base/recorder.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::dashboard {

enum class run_state : std::uint8_t {
  idle,    ///< no step is under way, and none has begun
  running, ///< steps are under way, or will be
  pausing, ///< somebody has paused it, and steps that had begun go on
  paused,  ///< somebody has paused it
  ended,
  failed,
};

std::string_view to_string(run_state state) noexcept;

/// What a dashboard shows besides what is in its picture.
struct board_state {
  std::string run; ///< changes whenever the graph or the run does
  run_state state = run_state::idle;
  std::string failure; ///< why the run has failed; empty if it has not
  ///@{
  /// The newest of so many warnings of the run, and when it came.
  std::string warning;
  std::uint64_t warning_ns = 0;
  std::uint64_t warnings = 0;
  ///@}
  trace_level level = trace_level::steps;
  std::uint64_t frame = 0;  ///< number of the frame
  std::uint64_t now_ns = 0; ///< since the begin of the run
  std::uint64_t lost = 0;   ///< events that came too late to be read
  double messages_per_s = 0;
  double steps_per_s = 0;
  ///@{
  /// What the dashboard's threads take: a share of a core now, and time so far.
  double overhead = 0;
  double cpu_seconds = 0;
  ///@}
  std::size_t watchers = 0;
  std::vector<double> busy; ///< by worker: share of its time in ops
  /// How much later each op begins, for those who look.
  std::int64_t op_delay_ms = 0;
  std::vector<delayed_op> delayed; ///< ops that are delayed now
};

} // namespace troupe::dashboard
