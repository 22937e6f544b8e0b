// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/graph/program.hpp>
#include <troupe/graph/ssa_builder.hpp>

#include <string_view>

namespace troupe::graph {

/// The op type that `accumulate_gradients` makes.
inline constexpr std::string_view accumulate_type = "accumulate";

/// Adds an op behind the last op of role Backward that writes the gradient of a
/// parameter. The op adds up the gradient on its own device, over the steps of
/// an update, and writes the mean over all their samples in the last step. In
/// other steps it leaves the gradient without a value. The sum is the op's own:
/// no other op can reach it, and the op never runs concurrently with itself.
///
/// The op completes the gradient, so what merges gradients, clips them or
/// updates parameters comes behind it.
///
/// Throws error(invalid_argument) if the program itself accumulates gradients
/// (Paddle's GradientMergeOptimizer).
program accumulate_gradients(program p, const build_options& options);

/// Marks the ops of a graph that concern an update, not a single step
/// (`op_handle::only_in_updates`): those of role Optimize or LRSched, except
/// ops that keep statistics of samples. Collectives are marked by the builder,
/// which knows what they merge.
///
/// Throws error(graph_invalid), naming op and variable, if an op of each step
/// reads a temporary that a marked op writes. A fetch may: it then fetches
/// nothing.
void mark_updates(ssa_graph& g);

} // namespace troupe::graph
