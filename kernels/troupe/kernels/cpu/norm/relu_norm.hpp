// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/kernels/cpu/norm/channel_statistics.hpp>
#include <troupe/kernels/cpu/simd/block_loops.hpp>
#include <troupe/kernels/kernel.hpp>

#include <utility>

namespace troupe::cpu {

// The relu behind a batch norm, and a sum with Z between, in the passes of the
// batch norm: what fused and synchronised batch norms share. Bit by bit what
// the single ops write, in the memory traffic of one. `block_norm` and
// `block_factors` hold here the values of all channels of the view. Workers
// share the channels.

/// Throws error(invalid_argument) for another act_type than relu.
void require_relu(const attribute_map& attributes);

/// Writes Y = relu((x - mean[c]) * factor[c] + bias[c]), or with an input Z of
/// X's shape relu(... + Z). Y lies as x does or, if Z does not, plain. Throws
/// error(shape_mismatch) and error(dtype_mismatch) for another Z.
void write_affine_relu(kernel_context& ctx, const channel_view& v,
                       const tensor& x, const block_norm& norm);
/// Writes Y of write_affine_relu without Z once more; Y of write_relu where one
/// element per channel was passed on, which zeros in both statistics say. Reads
/// SavedMean, SavedVariance (the inverse deviation) and, if the op has them,
/// Scale and Bias.
void write_affine_relu_again(kernel_context& ctx, const channel_view& v,
                             const tensor& x);
/// Writes Y = relu(x) or relu(x + Z): one element per channel.
void write_relu(kernel_context& ctx, const tensor& x);

/// As channel_gradient_sums and channel_combine of dy where what x was
/// normalised to is positive: with the op's inputs SavedMean, SavedVariance
/// (the inverse deviation) and, if it has them, Scale and Bias.
void relu_gradient_sums(kernel_context& ctx, const channel_view& v,
                        stored_values x, stored_values dy, float* dot,
                        float* total);
void relu_combine(kernel_context& ctx, const channel_view& v, stored_results dx,
                  stored_values dy, stored_values x, const block_factors& with);

/// dy where x is positive, which lies as x does: one element per channel.
tensor gradient_behind_relu(kernel_context& ctx, const tensor& x,
                            const tensor& dy);

/// X and the gradient of the sum that the relu read, elements in the same
/// order: Y@GRAD where Y is positive, which is Z@GRAD, too, and is written
/// there if the op has it.
/// @param takes_blocks channels are second
std::pair<tensor, tensor> images_behind_sum(kernel_context& ctx,
                                            bool takes_blocks);

} // namespace troupe::cpu
