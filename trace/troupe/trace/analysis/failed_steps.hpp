// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/trace/analysis/op_graph.hpp>
#include <troupe/trace/analysis/timeline.hpp>
#include <troupe/trace/trace.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <vector>

namespace troupe::trace {

/// The numbers of the steps that failed or were cancelled in at least one of
/// the processes of a run. Their times need not be on one clock.
std::set<std::uint32_t> failed_steps(std::span<const process_trace> parts);

/// What happened in a step that failed or was cancelled.
struct failed_step {
  std::uint32_t step = 0;
  /// From its first begin to the last end that was recorded, in nanoseconds.
  std::uint64_t ns = 0;
  bool was_cancelled = false; ///< no op of it failed
  /// The op that waited longest for other processes, or if none waited the op
  /// that ran longest; none if no op was recorded.
  handle_id longest = no_handle;
  std::uint64_t longest_ns = 0;
  bool has_waited = false; ///< `longest` waits for ops of other processes
  /// Processes that had not begun what `longest` waits for when it gave up, as
  /// far as the traces tell: also those without a trace.
  std::vector<std::size_t> missing;
};

/// The failed steps that have begun in the traces, ordered by number.
/// @param parts the processes of one run, on one clock (merge_clocks)
std::vector<failed_step> find_failed_steps(std::span<const process_trace> parts,
                                           const timeline& all,
                                           const op_graph& graph);

/// A process whose trace ends in the middle, while others go on: it was killed,
/// or its file is damaged.
struct ended_trace {
  std::size_t process = 0; ///< index of the trace
  /// The oldest step that had begun in it, and not ended; or if all had ended,
  /// the newest one. None: no step had begun.
  std::optional<std::uint32_t> step;
  bool is_within = false; ///< `step` had not ended
  /// The op of its last recorded event; none if no op was recorded.
  handle_id op = no_handle;
  bool has_op_ended = false;
};

/// The traces that were not closed, if at least one of the others was.
/// @param parts the processes of one run
std::vector<ended_trace>
find_ended_traces(std::span<const process_trace> parts);

} // namespace troupe::trace
