// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/apps/profile/op_profile.hpp>
#include <troupe/graph/program_cost.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace troupe::apps {

/// The ops of one type in one step, over all devices.
struct profile_row {
  std::string type;
  double count = 0;
  double total_ms = 0;
  double self_ms = 0;
  /// What they do at least, as `graph::count_cost` says, on average over the
  /// main block's ops of the type; 0: not known.
  graph::work work;
  /// What that takes one worker at least.
  double roof_ms = 0;
  /// Moved to change layouts, which is no work of the op.
  double layout_bytes = 0;

  double gflop_per_s() const { return work.flops / self_ms * 1e-6; }
  double gbyte_per_s() const { return work.bytes / self_ms * 1e-6; }
  /// Share of the attainable speed; more than 1 if values stay in the caches.
  double share_of_roof() const { return roof_ms / self_ms; }
};

/// A profile as a user reads it.
struct profile_report {
  std::uint64_t steps = 0;
  double step_ms = 0;
  std::vector<profile_row> rows; ///< most of the time first
  std::vector<double> idle;      ///< per worker, its share of time without op
  graph::roofline roof;          ///< of one worker when all compute
};

/// @param batch samples of a step over all devices
/// @param roof of all workers together
profile_report make_profile_report(const profile_times& times,
                                   const graph::program& program,
                                   std::int64_t batch, std::size_t devices,
                                   const graph::roofline& roof);

/// A table and a line per worker.
std::string to_text(const profile_report& report);
/// One JSON object in one line.
std::string to_json(const profile_report& report);

} // namespace troupe::apps
