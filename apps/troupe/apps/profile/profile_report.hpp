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
  /// Their minimum work according to `graph::count_cost`, as an average over
  /// the main block's ops of the type. 0: unknown.
  graph::work work;
  /// Time of one worker for this work at the attainable speed.
  double roof_ms = 0;
  /// Bytes moved to change layouts; they are not part of `work`.
  double layout_bytes = 0;

  double gflop_per_s() const { return work.flops / self_ms * 1e-6; }
  double gbyte_per_s() const { return work.bytes / self_ms * 1e-6; }
  /// Share of the attainable speed; more than 1 if values stay in the caches.
  double share_of_roof() const { return roof_ms / self_ms; }
};

/// A profile as it is printed.
struct profile_report {
  std::uint64_t steps = 0;
  double step_ms = 0;
  std::vector<profile_row> rows; ///< longest time first
  std::vector<double> idle;      ///< per worker: share of time without an op
  graph::roofline roof;          ///< of one worker while all compute
};

/// @param batch samples per step over all devices
/// @param roof attainable speed of all workers together
profile_report make_profile_report(const profile_times& times,
                                   const graph::program& program,
                                   std::int64_t batch, std::size_t devices,
                                   const graph::roofline& roof);

/// A table and a line per worker.
std::string to_text(const profile_report& report);
/// One JSON object in one line.
std::string to_json(const profile_report& report);

} // namespace troupe::apps
