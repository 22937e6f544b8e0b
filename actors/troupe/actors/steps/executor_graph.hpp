// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/actors/executor.hpp>
#include <troupe/trace/phase_log.hpp>

#include <memory>
#include <string>

namespace troupe::actors {

/// Returns the program with slots that list what ops with sub-blocks read and
/// write (graph/sub_blocks.hpp). Returns the program itself if it has no
/// sub-blocks.
std::shared_ptr<const graph::program>
exposed(std::shared_ptr<const graph::program> main);

/// Name of the loss: `named` if that is not empty, otherwise found in the
/// program. Empty if the program has no loss.
std::string loss_of(const graph::program& p, const std::string& named);

/// The graph whose handles `executor_options::places` names: before any of them
/// moves, and before the graph is split.
graph::ssa_graph build_unplaced_graph(std::shared_ptr<const graph::program> p,
                                      const executor_options& options,
                                      const std::string& loss);

/// Builds the graph that an executor runs: applies the options' passes, places
/// handles (graph/passes/place_handles.hpp), splits the graph over places
/// (graph/passes/transfers.hpp) and proves it free of hazards. The graph refers
/// to `p`. Throws error(graph_invalid) and what building throws.
/// @param log if not null, measures the proof as the phase "check"
graph::ssa_graph build_graph(std::shared_ptr<const graph::program> p,
                             const executor_options& options,
                             const std::string& loss,
                             trace::phase_log* log = nullptr);

} // namespace troupe::actors
