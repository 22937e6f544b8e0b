// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/trace/analysis/op_graph.hpp>
#include <troupe/trace/analysis/summary.hpp>
#include <troupe/trace/analysis/timeline.hpp>
#include <troupe/trace/export/track_slices.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace troupe::trace {

/// A slice, and the index of its process.
struct process_slice : slice {
  std::size_t process = 0;
};

/// A worker ran nothing before an op.
struct worker_wait {
  std::uint64_t begin = 0, end = 0;
  track_id track;
  std::uint32_t step = 0;
  handle_id op = no_handle;
  handle_id waited_for = no_handle; ///< whose message came last
  std::uint64_t ready = 0;          ///< when it came; 0 if not recorded
  std::size_t process = 0;          ///< index

  std::uint64_t ns() const noexcept { return end - begin; }
};

struct memory_point {
  std::uint64_t time = 0, bytes = 0;
};

/// What the page of `troupe trace report` shows of the traces of a run: the
/// numbers of `troupe trace summary`, and slices. Times of slices, waits and
/// memory are in ns since the first phase of all processes.
struct report_numbers {
  /// Reads the traces, which must outlive this object.
  /// @param parts at least one, on one clock (merge_clocks)
  explicit report_numbers(std::span<const process_trace> parts);
  report_numbers(const report_numbers&) = delete;
  report_numbers& operator=(const report_numbers&) = delete;

  op_graph graph;
  timeline all;
  trace_summary summary;
  /// The step of the summary's critical path; null if there is no step.
  const step_times* median_step = nullptr;
  interval median_interval;                  ///< from its begin to its end
  std::vector<process_slice> in_median_step; ///< of ops that overlap it
  std::vector<worker_wait> waits; ///< the longest ones first, at most 12
  /// By device: the most of each of some 500 intervals. Empty without memory.
  std::vector<std::vector<memory_point>> memory;
  std::uint64_t end = 0; ///< of the last slice

private:
  class collector;
};

} // namespace troupe::trace
