// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/kernels/cpu/layout/stored_values.hpp>
#include <troupe/kernels/kernel.hpp>

#include <cstdint>

namespace troupe::cpu {

struct conv_problem;

/// ResNeXt's convolution: 3x3, stride 1, in groups of 4 channels, over images
/// in blocks of channels (channel_blocks.hpp). Libraries use only a quarter of
/// each vector for it. Source: Xie et al., "Aggregated residual
/// transformations", CVPR 2017. Thread rule: any thread.
namespace group_convolution {

/// Whether this machine's loops support the problem if both images are in
/// blocks of `block` channels.
bool fits(const conv_problem& p, std::int64_t block);

void forward(kernel_context& ctx, const conv_problem& p, std::int64_t block,
             stored_values x, const float* filter, stored_results out);
void input_gradient(kernel_context& ctx, const conv_problem& p,
                    std::int64_t block, stored_values dout, const float* filter,
                    stored_results dx);
void filter_gradient(kernel_context& ctx, const conv_problem& p,
                     std::int64_t block, stored_values x, stored_values dout,
                     float* dw);

} // namespace group_convolution

} // namespace troupe::cpu
