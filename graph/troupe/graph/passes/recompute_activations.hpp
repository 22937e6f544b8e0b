// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/graph/program.hpp>

#include <set>
#include <string>
#include <string_view>

namespace troupe::graph {

/// The op type that `recompute_activations` makes. It recomputes Y from the X,
/// Scale, Bias, SavedMean and SavedVariance of the op that wrote Y. An input in
/// slot After only delays the op.
inline constexpr std::string_view recompute_type = "recompute_batch_norm_act";

/// Recomputes outputs of batch norms with a relu (passes/fuse_batch_norm.hpp,
/// on one device or split over several) for the backward pass of the main
/// block. The backward pass reads a separate variable, "<name>@AGAIN". An op
/// before the first such reader recomputes it as soon as the gradient that this
/// reader waits for is available. This costs one more pass over X. The memory
/// of the original value is free after its last reader in the forward pass.
///
/// A value is recomputed only if
/// - its batch norm uses the step's own statistics and has no Z;
/// - X is kept for another op, and no input of the recomputation changes;
/// - all forward readers come before the first backward reader, which reads a
///   gradient;
/// - it is neither persistable nor in `kept`.
///
/// Results are bit-identical. A program with several blocks is not changed,
/// because the ops of all blocks would have to be checked.
///
/// Source: Chen et al., "Training deep nets with sublinear memory cost", 2016,
/// section 4.1 (what is cheap to compute is not kept).
program recompute_activations(program p, const std::set<std::string>& kept);

/// True if the main block has an op whose result could be recomputed.
bool has_activations_to_recompute(const program& p);

} // namespace troupe::graph
