// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/kernels/cpu/norm/channel_statistics.hpp>
#include <troupe/kernels/cpu/simd/block_loops.hpp>
#include <troupe/kernels/kernel.hpp>

#include <utility>

namespace troupe::cpu {

// A batch norm's relu, and an optional sum with Z before it, computed in the
// passes of the norm itself. Fused and synchronised batch norms share these
// functions. The results have the same bits as those of the single ops, but
// take the memory traffic of one. `block_norm` and `block_factors` hold the
// values of all channels of the view here. Workers share the channels.

/// Throws error(invalid_argument) if act_type is not relu.
void require_relu(const attribute_map& attributes);

/// Writes Y = relu((x - mean[c]) * factor[c] + bias[c]) or, with an input Z of
/// X's shape, relu(... + Z). Y has the layout of x, or is plain if Z has
/// another layout. Throws error(shape_mismatch) or error(dtype_mismatch) if Z
/// does not fit X.
void write_affine_relu(kernel_context& ctx, const channel_view& v,
                       const tensor& x, const block_norm& norm);
/// Recomputes Y of write_affine_relu without Z. If one element per channel was
/// passed through, which zeros in both statistics show, it recomputes Y of
/// write_relu. Reads SavedMean, SavedVariance (the inverse deviation) and, if
/// the op has them, Scale and Bias.
void write_affine_relu_again(kernel_context& ctx, const channel_view& v,
                             const tensor& x);
/// Writes Y = relu(x) or relu(x + Z), for one element per channel.
void write_relu(kernel_context& ctx, const tensor& x);

/// As channel_gradient_sums and channel_combine, for dy where the normalized x
/// is positive and 0 elsewhere. Read the op's inputs SavedMean, SavedVariance
/// (the inverse deviation) and, if it has them, Scale and Bias.
void relu_gradient_sums(kernel_context& ctx, const channel_view& v,
                        stored_values x, stored_values dy, float* dot,
                        float* total);
void relu_combine(kernel_context& ctx, const channel_view& v, stored_results dx,
                  stored_values dy, stored_values x, const block_factors& with);

/// dy where x is positive, else 0, in the layout of x; for one element per
/// channel.
tensor gradient_behind_relu(kernel_context& ctx, const tensor& x,
                            const tensor& dy);

/// X and the gradient of the relu's input, with elements in the same order.
/// That gradient is Y@GRAD where Y is positive and 0 elsewhere. It is also
/// Z@GRAD, and is written there if the op has that output.
/// @param takes_blocks channels are second
std::pair<tensor, tensor> images_behind_sum(kernel_context& ctx,
                                            bool takes_blocks);

} // namespace troupe::cpu
