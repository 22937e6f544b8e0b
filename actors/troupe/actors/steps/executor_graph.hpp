// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/actors/executor.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace troupe::actors {

/// The program with what ops with sub-blocks read and write in their slots
/// (graph/sub_blocks.hpp); itself if it has none.
std::shared_ptr<const graph::program>
exposed(std::shared_ptr<const graph::program> main);

/// The loss, `named` if that is not empty; nothing for a program that has none.
/// Throws what `graph::find_loss` throws for one that has several.
std::string loss_of(const graph::program& p, const std::string& named);

/// How an executor with these options builds its graph: which passes it runs
/// depends on the kernels that its devices have, and on what they share.
graph::build_options build_options_of(const executor_options& options,
                                      const std::string& loss);

/// By device: its place, which is its process in a run over several; empty: all
/// are in one.
std::vector<std::uint32_t> places_of(const executor_options& options);

/// The graph that an executor runs: split over places
/// (graph/passes/transfers.hpp), after the options' passes, proven free of
/// hazards. Refers to `p`.
/// Throws error(graph_invalid) and what building throws.
graph::ssa_graph build_graph(std::shared_ptr<const graph::program> p,
                             const executor_options& options,
                             const std::string& loss);

} // namespace troupe::actors
