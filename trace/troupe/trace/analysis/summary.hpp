// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/trace/analysis/actor_account.hpp>
#include <troupe/trace/analysis/critical_path.hpp>
#include <troupe/trace/analysis/failed_steps.hpp>
#include <troupe/trace/analysis/memory_use.hpp>
#include <troupe/trace/analysis/op_graph.hpp>
#include <troupe/trace/analysis/slow_ranks.hpp>
#include <troupe/trace/analysis/slow_runs.hpp>
#include <troupe/trace/analysis/timeline.hpp>
#include <troupe/trace/analysis/waits.hpp>
#include <troupe/trace/trace.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace troupe::trace {

/// Step times, in nanoseconds, of the steady steps. Quantiles are of
/// `typical_step_times`.
struct step_statistics {
  std::size_t count = 0;   ///< all of `timeline::steps`
  std::size_t counted = 0; ///< steady ones
  double mean_ns = 0;
  double median_ns = 0;
  double p10_ns = 0;
  double p90_ns = 0;
  /// Share of the time from the begin of the first to the end of the last in
  /// which no step was under way.
  double between = 0;
};

/// The ops of a type, per step that counts for ops (`timeline::op_steps`).
struct type_time {
  std::string type;
  double count = 0;
  double self_ns = 0; ///< over all workers, with what idle workers helped
  double share = 0;   ///< of the self time of all types
};

/// How much of its time a worker had no op.
struct worker_idle {
  std::size_t process = 0;
  std::size_t worker = 0;
  double idle = 0; ///< share of the time of `op_steps` without an op
};

/// How much of its time a stream of a device had no op under way.
struct stream_idle {
  std::uint32_t device = 0; ///< index into `graph_info::devices`
  std::string stream;       ///< "compute"
  /// Share of the time of `op_steps` in which none of its ops was between its
  /// begin and its results.
  double idle = 0;
};

/// Overlap of computing and merging in a process.
struct merge_overlap {
  std::size_t process = 0;
  double compute_ns = 0; ///< per step of `op_steps`, union of intervals
  double merge_ns = 0;
  double shared_ns = 0; ///< both at once
  /// |compute and merge| / |merge|; 0 if nothing was merged.
  double share() const { return merge_ns > 0 ? shared_ns / merge_ns : 0; }
};

/// Messages by what sent and received them.
struct message_counts {
  std::uint64_t start_to_op = 0, start_to_var = 0;
  std::uint64_t op_to_op = 0, op_to_var = 0;
  std::uint64_t var_to_op = 0, var_to_var = 0;
  /// All of them.
  std::uint64_t total() const {
    return start_to_op + start_to_var + op_to_op + op_to_var + var_to_op
           + var_to_var;
  }
};

/// Failures that were recorded. The first one is the cause of others.
struct failure_use {
  std::size_t count = 0;
  handle_id op = no_handle; ///< of the first one; none: no op failed
  std::uint32_t step = 0;   ///< likewise
};

/// An actor of the application, over the whole trace.
struct actor_use {
  std::size_t process = 0;
  actor_number actor = no_actor;
  actor_activity activity;
  double busy = 0; ///< share of the trace's time in its handlers
};

/// What `troupe trace summary` says. docs/trace.md defines each number.
struct trace_summary {
  step_statistics steps;
  /// How many steps count for `types`, `waits`, `workers`, `streams` and
  /// `overlap`: those of `timeline::op_steps`. Fewer than `steps.counted` if
  /// the level was raised or lowered.
  std::size_t op_steps = 0;
  /// Steps that `messages` counts those of.
  std::size_t message_steps = 0;
  /// Of the step that was asked for, or of the median step; none if no step
  /// was recorded.
  std::optional<critical_path> path;
  /// Of the step that was asked for, or of all that count for ops.
  slow_run_list slow_runs;
  std::vector<type_time> types; ///< the most time first
  std::vector<slow_rank> slow_ranks;
  std::vector<op_wait> waits;       ///< the most time first
  std::vector<worker_idle> workers; ///< by process and number
  std::vector<stream_idle> streams; ///< that ran ops, by device and name
  std::vector<merge_overlap> overlap;
  message_counts messages;
  failure_use failures;
  std::vector<failed_step> failed_steps; ///< ordered by number
  std::vector<ended_trace> ended_traces; ///< while others go on, by process
  std::vector<memory_peak> memory;
  /// Those that have received messages, or have failed; the busiest first.
  std::vector<actor_use> actors;
  std::uint64_t lost = 0; ///< events, in all processes
  /// The level asked for, or a higher one of which there are events. Off: the
  /// files have no events, and do not say.
  trace_level level = trace_level::off;
};

/// @param parts the processes of one run, on one clock (merge_clocks)
/// @param of a step of the timeline that is to be explained; null: the median
trace_summary summarize(std::span<const process_trace> parts,
                        const timeline& all, const op_graph& graph,
                        const step_times* of = nullptr);

} // namespace troupe::trace
