// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/kernels/cpu/layout/stored_values.hpp>
#include <troupe/kernels/kernel.hpp>
#include <troupe/kernels/precision.hpp>

namespace troupe::cpu {

struct conv_problem;
enum class conv_direction;

/// Convolutions 3x3 of stride 1 by Winograd's F(4x4, 3x3), in float32: tiles of
/// 4x4 pixels with a quarter of the multiplications. Filters are transformed in
/// the cache, just before they are multiplied with, and never lie in memory
/// transformed: at the size of 36 / 9 of all filters that would cost more than
/// it saves where images are small. Images lie in blocks of as many channels as
/// a vector has or twice as many, with channels last, or plain, and are then
/// copied into blocks.
/// Results have the same bits for any number of workers and however operands
/// lie. Source: Lavin and Gray, "Fast algorithms for convolutional neural
/// networks", CVPR 2016. Thread rule: any thread.
namespace winograd_convolution {

/// Whether this machine's loops fit the problem and take less time than a
/// direct convolution with such factors.
bool fits(conv_direction direction, const conv_problem& p, precision factors);

/// Channels of the blocks that a result in blocks lies in, of a problem that
/// fits.
std::int64_t block(const conv_problem& p);

void forward(kernel_context& ctx, const conv_problem& p, stored_values x,
             const float* filter, stored_results out);
void input_gradient(kernel_context& ctx, const conv_problem& p,
                    stored_values dout, const float* filter, stored_results dx);
void filter_gradient(kernel_context& ctx, const conv_problem& p,
                     stored_values x, stored_values dout, float* dw);

} // namespace winograd_convolution

} // namespace troupe::cpu
