// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/trace/analysis/op_graph.hpp>
#include <troupe/trace/analysis/timeline.hpp>
#include <troupe/trace/trace.hpp>

#include <cstddef>
#include <cstdint>
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

} // namespace troupe::trace
