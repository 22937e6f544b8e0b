// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/actors/executor.hpp>
#include <troupe/apps/bench/delay_table.hpp>

#include <cstdint>
#include <memory>

namespace troupe::apps {

/// How a kernel lets time pass.
enum class delay_kind : std::uint8_t {
  spin, ///< keeps its core busy
  sleep ///< leaves it to others; ends some 50 us late
};

/// A kernel that computes nothing and takes `ns`.
std::unique_ptr<kernel> make_delay_kernel(std::uint64_t ns, delay_kind how);

/// Sets up `options` to run `program` with kernels, collectives and fetches
/// that only take the time that `delays` says. Control flow counts as one op.
/// Persistable variables get values that mean nothing.
void use_delays(executor_options& options, const graph::program& program,
                const delay_table& delays, delay_kind how);

/// What a step of such a run takes at least.
struct delay_bounds {
  double work_ns = 0;          ///< all delays
  double critical_path_ns = 0; ///< delays along the longest path

  /// The least that `workers` can do.
  double ideal_ns(std::size_t workers) const;
};

delay_bounds bounds_of(const graph::ssa_graph& graph,
                       const delay_table& delays);

} // namespace troupe::apps
