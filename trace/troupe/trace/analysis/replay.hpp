// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/trace/analysis/cost_change.hpp>
#include <troupe/trace/analysis/cost_table.hpp>
#include <troupe/trace/analysis/op_graph.hpp>
#include <troupe/trace/analysis/timeline.hpp>

#include <cstdint>
#include <span>
#include <vector>

namespace troupe::trace {

/// The steps of a replay, and how long each took and takes.
struct replayed_steps {
  std::vector<std::uint32_t> steps;
  std::vector<double> measured_ns;
  std::vector<double> predicted_ns;
};

/// Which steps to replay: a run of whole steps in a row.
struct step_range {
  std::uint32_t first = 0;
  std::uint32_t last = 0; ///< included
};

/// Predicts step times with other costs, by list scheduling: runs the steps
/// again on as many workers, with the edges of the graph, and with streams that
/// launch as many ops at once as they did. If several ops could begin, the one
/// that began first in the trace does. A run of an op takes its measured time,
/// or that of its row in `costs`, if there are any; to it the changes for its
/// type or name apply in their order. So without costs and changes each run
/// takes what it took. What the trace cannot explain stays as it was: the time
/// between the readiness of an op and its begin although a worker was free, and
/// the time between a step's end and the begin of one that waits for it.
///
/// Steps before the range count as they were. Help of idle workers is part of
/// an op's time.
///
/// Throws error(invalid_argument) if the range is not one of whole steps or no
/// op that `costs` has ran in it, and error(not_found) if none did that a
/// change means.
/// @param costs may be null
replayed_steps replay(const timeline& all, const op_graph& graph,
                      const step_range& range,
                      std::span<const cost_change> changes = {},
                      const cost_table* costs = nullptr);

/// Steps to replay in order to predict the median step: whole steps in a row,
/// at most some 200,000 runs. Throws error(invalid_argument) if the trace has
/// no such steps, and says why.
step_range steps_to_replay(const timeline& all);
/// The same for step `only`: some steps before it, and it.
step_range steps_to_replay(const timeline& all, std::uint32_t only);

} // namespace troupe::trace
