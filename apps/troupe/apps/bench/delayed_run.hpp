// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/actors/executor.hpp>
#include <troupe/apps/delays/delay_table.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace troupe::apps {

/// How a delay spends its time.
enum class delay_kind : std::uint8_t {
  spin, ///< keeps its core busy
  sleep ///< frees its core; ends about 50 us late
};

/// Returns after `ns` nanoseconds.
void spend_time(std::uint64_t ns, delay_kind how);

/// Turns off the passes that change the number of ops.
void run_ops_as_written(executor_options& options);

/// How long each op of a graph takes in a run without kernels.
struct op_delays {
  std::vector<std::uint64_t> ns; ///< by handle; of variables 0
  std::size_t unknown = 0;       ///< ops that have no cost in the file
  std::set<std::string> unknown_types = {}; ///< their types
};

/// Sets up `options` for a dry run of `program` in which ops take time
/// (`plan_delays` says how much). No kernel is needed or run. A control flow op
/// counts as one op. Without a file of costs, the program's ops run as written:
/// no pass makes ops of other types, so that entries by type mean what they
/// say. With one, the passes run as in training: the file has the ops that they
/// make.
///
/// Throws usage_error if `delays` names a type that neither an op of the
/// program nor a collective, a fetch or the loss scale has.
/// @param plan read by the ops; must be filled before the first step
void use_delays(executor_options& options, const graph::program& program,
                const delay_table& delays, delay_kind how,
                std::shared_ptr<const op_delays> plan);

/// The delays of the ops that an executor runs. An entry of an op's own type
/// comes first, then its row in the file of costs, then the entry for all
/// types.
op_delays plan_delays(const executor& exe, const delay_table& delays);

/// Lower bounds for the time of a step of such a run.
struct delay_bounds {
  double work_ns = 0;          ///< all delays
  double critical_path_ns = 0; ///< delays along the longest path

  /// Minimum time of a step with that many workers.
  double ideal_ns(std::size_t workers) const;
};

delay_bounds bounds_of(const graph::ssa_graph& graph, const op_delays& delays);

} // namespace troupe::apps
