// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/trace/analysis/op_graph.hpp>
#include <troupe/trace/analysis/timeline.hpp>
#include <troupe/trace/trace.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace troupe::trace {

/// Why a run took longer than the op usually does.
enum class slow_cause : std::uint8_t {
  unknown,   ///< the op itself, or what the trace does not know
  preempted, ///< a worker's thread was ready and had no core for much of it
  throttled, ///< other machines of the host had the cores for much of it
};
/// The name of the value, such as "preempted".
std::string_view to_string(slow_cause cause) noexcept;

/// A run that took at least twice as long as the op's median, and 1 ms more.
struct slow_run {
  handle_id op = no_handle;
  std::uint32_t step = 0;
  std::uint16_t process = 0; ///< index of the trace
  std::uint16_t worker = 0;  ///< of `preempted`, the one that had no core
  std::uint64_t ns = 0;
  double median_ns = 0; ///< of the op
  slow_cause cause = slow_cause::unknown;
  /// Of `preempted` and `throttled`: for how long there was no core, between
  /// the readings around the run (event_kind::core_wait).
  std::uint64_t without_core_ns = 0;
  /// Likewise: the time between those readings. It can span several steps.
  std::uint64_t around_ns = 0;

  /// How much longer than the median the run took.
  double excess_ns() const noexcept {
    return static_cast<double>(ns) - median_ns;
  }
};

/// What `find_slow_runs` found.
struct slow_run_list {
  /// The most excess first, at most `most_slow_runs`.
  std::vector<slow_run> worst;
  std::size_t count = 0; ///< of all
  double excess_ns = 0;  ///< of all
};

/// The slow runs of `timeline::op_steps`. Ops that wait for others, such as
/// collectives, are left out: `find_waits` tells of them. A cause is named if
/// it explains half of the excess.
/// @param only if not null, runs of this step alone, which may be any
slow_run_list find_slow_runs(std::span<const process_trace> parts,
                             const timeline& all, const op_graph& graph,
                             const step_times* only = nullptr);
/// How many runs `slow_run_list` names.
inline constexpr std::size_t most_slow_runs = 100;

} // namespace troupe::trace
