// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/apps/trace/traced_run.hpp>
#include <troupe/trace/analysis/summary.hpp>

#include <nlohmann/json.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace troupe::apps {

/// An op of a critical path: all its parts together.
struct path_op {
  handle_id op = no_handle;
  std::uint64_t ns = 0;        ///< that it ran
  std::uint64_t waited_ns = 0; ///< that it was ready without a worker
};

/// The ops of a path, the most time first.
std::vector<path_op> ops_of(const trace::critical_path& path);

/// The sentence of a wait: "waits for mul#0@cpu:0".
std::string reason_text(const traced_run& run, const trace::op_wait& wait);

/// What a rank that was waited for sent: ", parcels of 4.0 KiB at 812.3 MB/s".
/// Of small ones, how long one was on its way: ", parcels of 4 B in 9.1 us".
/// Empty if it sent none.
std::string parcels_text(const trace::op_wait& wait);

/// Which step a summary explains.
enum class which_step : std::uint8_t { median, slowest, named };

std::string summary_text(const traced_run& run, const trace::trace_summary& s,
                         which_step which);
nlohmann::ordered_json summary_json(const traced_run& run,
                                    const trace::trace_summary& s);

} // namespace troupe::apps
