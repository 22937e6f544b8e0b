// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/kernels/cpu/layout/stored_values.hpp>
#include <troupe/kernels/kernel.hpp>
#include <troupe/kernels/precision.hpp>

namespace troupe::cpu {

struct conv_problem;
enum class conv_direction;

/// Convolutions 3x3 of stride 1 by Winograd's F(4x4, 3x3), in float32: tiles of
/// 4x4 pixels take a quarter of the multiplications. Filters are transformed in
/// the cache, just before they are multiplied. Transformed filters are never
/// stored in memory: they are 36 / 9 as large as the filters, and where images
/// are small the traffic would cost more than it saves. Images may be in blocks
/// of one or two vectors of channels, with channels last, or plain; plain ones
/// are first copied into blocks.
/// Results have the same bits for any number of workers and any layout of the
/// operands. Source: Lavin and Gray, "Fast algorithms for convolutional neural
/// networks", CVPR 2016. Thread rule: any thread.
namespace winograd_convolution {

/// Whether this machine's loops support the problem and take less time than a
/// direct convolution with factors of that precision.
bool fits(conv_direction direction, const conv_problem& p, precision factors);

/// The number of channels per block of the result, for a problem that fits and
/// whose result is not channels last.
std::int64_t block(const conv_problem& p);

void forward(kernel_context& ctx, const conv_problem& p, stored_values x,
             const float* filter, stored_results out);
void input_gradient(kernel_context& ctx, const conv_problem& p,
                    stored_values dout, const float* filter, stored_results dx);
void filter_gradient(kernel_context& ctx, const conv_problem& p,
                     stored_values x, stored_values dout, float* dw);

} // namespace winograd_convolution

} // namespace troupe::cpu
