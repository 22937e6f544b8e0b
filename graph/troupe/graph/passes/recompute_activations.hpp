// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/graph/program.hpp>

#include <set>
#include <string>
#include <string_view>

namespace troupe::graph {

/// The op type that `recompute_activations` makes: Y once more, from the X,
/// Scale, Bias, SavedMean and SavedVariance of the op that wrote it. What else
/// it reads, in slot After, says when.
inline constexpr std::string_view recompute_type = "recompute_batch_norm_act";

/// Lets the backward pass of the main block read what batch norms with a relu
/// behind them (passes/fuse_batch_norm.hpp, on one device or split over
/// several) wrote from a variable of its own, "<name>@AGAIN". An op in front of
/// the first such reader computes it again, as soon as the gradient that this
/// reader waits for is there. It costs one more pass over X; the value's memory
/// is free after the forward pass, in which the next convolution reads it.
///
/// Only of batch norms with the step's own statistics and without Z; where X is
/// kept for another op and all that the value is computed from stays as it was;
/// where all other readers stand before and the first one reads a gradient; and
/// of values that are neither persistable nor in `kept`. Results are the same
/// bit by bit. A program with several blocks stays as it is: their ops would
/// need looking at.
///
/// Source: Chen et al., "Training deep nets with sublinear memory cost", 2016,
/// section 4.1 (what is cheap to compute is not kept).
program recompute_activations(program p, const std::set<std::string>& kept);

/// True if the main block has an op whose result may be computed again.
bool has_activations_to_recompute(const program& p);

} // namespace troupe::graph
