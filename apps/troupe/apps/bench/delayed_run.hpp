// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/actors/executor.hpp>
#include <troupe/apps/delays/delay_table.hpp>

#include <cstdint>
#include <memory>

namespace troupe::apps {

/// How a delay kernel spends its time.
enum class delay_kind : std::uint8_t {
  spin, ///< keeps its core busy
  sleep ///< frees its core; ends about 50 us late
};

/// A kernel that computes nothing and takes `ns`.
std::unique_ptr<kernel> make_delay_kernel(std::uint64_t ns, delay_kind how);

/// Sets up `options` to run `program` with kernels, collectives and fetches
/// that take the time given by `delays` and compute nothing. A control flow op
/// counts as one op. Persistable variables get dummy values. Throws usage_error
/// if `delays` names a type that neither an op of the program nor a collective,
/// a fetch or the loss scale has.
void use_delays(executor_options& options, const graph::program& program,
                const delay_table& delays, delay_kind how);

/// Lower bounds for the time of a step of such a run.
struct delay_bounds {
  double work_ns = 0;          ///< all delays
  double critical_path_ns = 0; ///< delays along the longest path

  /// Minimum time of a step with that many workers.
  double ideal_ns(std::size_t workers) const;
};

delay_bounds bounds_of(const graph::ssa_graph& graph,
                       const delay_table& delays);

} // namespace troupe::apps
