// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/trace/trace.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace troupe::trace {

/// A run of an op, or a worker's help with one. Times are in nanoseconds.
struct op_run {
  std::uint64_t begin = 0;
  std::uint64_t end = 0; ///< of the run, or of the launch if it was pending
  /// When its results were there: `end`, or the completion of the launch.
  std::uint64_t done = 0;
  handle_id op = no_handle;
  std::uint32_t step = 0;
  std::uint16_t worker = 0;
  std::uint16_t process = 0;
};

/// A step that began and ended in all processes, and failed in none.
struct step_times {
  std::uint32_t step = 0;
  std::uint64_t begin = 0; ///< in the first process that began it
  std::uint64_t end = 0;   ///< in the last process
  /// Its own begin, or the end of the step before if that is later.
  std::uint64_t after = 0;
  /// True if all its ops were recorded: it has as many runs as the step that
  /// has the most. False of steps in which the level was too low, was raised or
  /// lowered, or events were lost.
  bool is_whole = false;

  /// The step time: what the step adds to the time of those before it.
  std::uint64_t ns() const noexcept { return end - after; }
};

/// What ran when. Built from the traces of all processes of a run, whose times
/// are on one clock (merge_clocks).
class timeline {
public:
  /// @param parts the processes of one run
  explicit timeline(std::span<const process_trace> parts);

  /// The runs of ops, ordered by their begin. Runs without an end are left out.
  std::span<const op_run> runs() const noexcept { return runs_; }
  /// The times in which idle workers ran parts of ops; `done` is `end`.
  std::span<const op_run> helps() const noexcept { return helps_; }
  /// The steps that began and ended, and did not fail.
  std::span<const step_times> steps() const noexcept { return steps_; }
  /// The steps that count: all but the first two of the run, in which kernels
  /// choose their code and memory grows. All steps if less than two are left.
  std::span<const step_times> steady_steps() const noexcept;
  /// The steps that count for numbers of ops: the steady ones that are whole;
  /// all whole ones if no steady step is. Ordered by number.
  std::span<const step_times> op_steps() const noexcept { return op_steps_; }
  /// One of `op_steps`; null if the step is none.
  const step_times* find_op_step(std::uint32_t step) const;
  /// Indexes into `runs` of the runs of a step, ordered by their begin.
  std::span<const std::uint32_t> runs_of(std::uint32_t step) const;
  /// The same of the runs of an op.
  std::span<const std::uint32_t> runs_of_op(handle_id op) const;
  /// The run of an op in a step; null if there is none.
  const op_run* find(handle_id op, std::uint32_t step) const;
  /// The index in `runs` of one of them.
  std::size_t index_of(const op_run& r) const {
    return static_cast<std::size_t>(&r - runs_.data());
  }
  /// Workers of a process: as many as it had, or more if it used more.
  std::size_t workers(std::size_t process) const { return workers_[process]; }
  /// Number of processes of the run.
  std::size_t processes() const noexcept { return workers_.size(); }

private:
  void read(const process_trace& part, std::uint16_t process);
  void find_steps(std::span<const process_trace> parts);
  void index_runs(std::size_t handles);
  void choose_op_steps();

  std::vector<op_run> runs_, helps_;
  std::vector<step_times> steps_, op_steps_;
  std::vector<std::size_t> workers_;
  std::vector<std::uint32_t> first_of_op_, by_op_; // indexes of runs
  std::vector<std::uint32_t> by_step_;
};

/// Step times of the steady steps, in nanoseconds, for medians and other
/// quantiles. Where steps were in flight together, one can end right after the
/// other: then means of as many in a row as were in flight together.
std::vector<double> typical_step_times(const timeline& all);

/// The time from `begin` to `end`.
struct interval {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};
/// Sorts and joins intervals that overlap or touch.
std::vector<interval> union_of(std::vector<interval> all);
/// Total length of such a union.
std::uint64_t length_of(std::span<const interval> joined);
/// What two unions share: a union.
std::vector<interval> shared_of(std::span<const interval> a,
                                std::span<const interval> b);
/// Length of what two unions share.
std::uint64_t shared_length(std::span<const interval> a,
                            std::span<const interval> b);

} // namespace troupe::trace
