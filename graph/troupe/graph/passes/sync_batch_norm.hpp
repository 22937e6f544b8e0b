// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/graph/program.hpp>

#include <cstdint>
#include <string_view>

namespace troupe::graph {

/// The type of the ops that update running statistics (see below).
inline constexpr std::string_view running_statistics_type =
  "sync_batch_norm_running";

/// Which batch norms compute their statistics over all devices.
enum class sync_batch_norm : std::uint8_t {
  as_written, ///< those of op type sync_batch_norm
  all,        ///< also those of type batch_norm that are in training mode
};

/// Splits each such op of the main block, and its gradient, into ops on one
/// device and an `all_reduce` between them. N devices then compute what one
/// device computes on the whole batch:
///
/// - sync_batch_norm_moments: X -> Moments [devices, 1 + 2 channels];
/// - all_reduce: Moments -> Moments;
/// - sync_batch_norm_normalize: X, Scale, Bias, Moments -> Y, SavedMean,
///   SavedVariance;
/// - sync_batch_norm_running: Mean, Variance, Moments -> MeanOut, VarianceOut;
/// - sync_batch_norm_grad_sums: X, Y@GRAD, SavedMean, SavedVariance, Moments ->
///   Sums [2 channels], Scale@GRAD, Bias@GRAD;
/// - all_reduce: Sums -> Sums;
/// - sync_batch_norm_grad_apply: X, Y@GRAD, Scale, SavedMean, SavedVariance,
///   Moments, Sums -> X@GRAD.
///
/// A device writes count, means and variances to its own row of Moments. Its
/// other rows are zero, so the all_reduce collects the rows without rounding.
/// All devices combine them in the same order, and samples have equal weight
/// for any sharding. sync_batch_norm_running has role Optimize, so that it also
/// runs on devices without samples. Gradients of Scale and Bias stay local and
/// are merged like all gradients.
///
/// Ops of `fuse_batch_norms` are split in the same way. The attribute act_type
/// makes the parts that process images compute the relu too. Their gradients
/// read Scale and Bias to determine where Y is positive. With a sum, normalize
/// reads Z instead, and grad_sums reads Y and writes the gradient of the sum to
/// Z@GRAD, which grad_apply reads.
///
/// Ops with fixed statistics are not changed. Throws error(graph_invalid)
/// naming an op without SavedMean.
program split_batch_norms(program p, sync_batch_norm which);

/// True if the main block has an op that `split_batch_norms` would split.
bool has_batch_norms_to_split(const program& p, sync_batch_norm which);

} // namespace troupe::graph
