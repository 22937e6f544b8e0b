// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/trace/export/track_slices.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace troupe::trace {

// What the page of `troupe trace report` shows of a trace. Times are in ns.

struct step_time {
  std::uint32_t step = 0;
  std::uint64_t begin = 0, end = 0;

  std::uint64_t ns() const noexcept { return end - begin; }
};

/// All runs of the ops of a type.
struct type_runs {
  std::string type;
  std::uint64_t runs = 0, ns = 0, longest = 0;
};

/// A worker ran nothing before an op.
struct worker_wait {
  std::uint64_t begin = 0, end = 0;
  track_id track;
  std::uint32_t step = 0;
  handle_id op = no_handle;
  handle_id waited_for = no_handle; ///< whose message came last
  std::uint64_t ready = 0;          ///< when it came; 0 if not recorded

  std::uint64_t ns() const noexcept { return end - begin; }
};

struct memory_point {
  std::uint64_t time = 0, bytes = 0;
};

/// Memory of the temporaries of a device.
struct device_memory {
  memory_point peak;
  std::vector<memory_point> curve; ///< the most of each of some 500 intervals
};

struct report_numbers {
  std::vector<step_time> steps; ///< as they began
  /// Index of the step of median length: of all but the first one, if there are
  /// others.
  std::optional<std::size_t> median_step;
  std::vector<slice> in_median_step; ///< slices of ops that overlap it
  std::vector<slice> phases;
  std::vector<type_runs> types;       ///< the most time first
  std::vector<worker_wait> waits;     ///< the longest ones first, at most 12
  std::vector<device_memory> devices; ///< as the graph numbers them
  std::uint64_t failures = 0;
  std::uint64_t end = 0; ///< of the last slice
};

/// Reads the trace twice. The result refers to the trace.
report_numbers numbers_of(const traced_process& process);

} // namespace troupe::trace
