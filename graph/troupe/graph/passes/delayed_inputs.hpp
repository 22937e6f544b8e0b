// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/graph/ssa_graph.hpp>

#include <span>

namespace troupe::graph {

/// Lets ops read what temporaries held some steps ago, e.g. a gradient that an
/// update uses a step later, so that it need not wait for it.
///
/// In the first steps, which have no such step before them, the input has no
/// value. An op that takes inputs without a value runs all the same; any other
/// op does nothing then, and neither do ops that read what it would have
/// written.
///
/// Edges are derived again, but for those of kind `order`, which stay.
///
/// Throws error(invalid_argument) for an op or input that is not there, a
/// distance of 0, or an input that is listed twice; error(graph_invalid),
/// naming op and variable, if the variable is persistable or is overwritten
/// later in its step.
ssa_graph delay_inputs(ssa_graph g, std::span<const delayed_input> inputs);

/// In how many first steps inputs may have no value: the largest sum of
/// distances along a chain of ops.
std::uint32_t steps_without_past(const ssa_graph& g);

} // namespace troupe::graph
