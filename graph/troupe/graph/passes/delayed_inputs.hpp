// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/graph/ssa_graph.hpp>

#include <span>

namespace troupe::graph {

/// Lets ops read the values that temporaries had some steps ago. For example,
/// an update can use the gradient of the previous step, so that it need not
/// wait for the current one.
///
/// In the first steps there is no earlier step, so the input has no value. An
/// op that accepts inputs without a value runs anyway. Any other op is skipped,
/// and so are the ops that read its outputs.
///
/// Edges of kind `order` are kept. All other edges are recomputed.
///
/// Throws error(invalid_argument) for a missing op or input, a distance of 0,
/// or an input that is listed twice. Throws error(graph_invalid), naming op and
/// variable, if the op is not one of the program (but a fetch, say), or if the
/// variable is persistable or is overwritten later in its step.
ssa_graph delay_inputs(ssa_graph g, std::span<const delayed_input> inputs);

/// Number of first steps in which inputs can lack a value: the largest sum of
/// distances along a chain of ops, which may lead over places.
std::uint32_t steps_without_past(const ssa_graph& g);

} // namespace troupe::graph
