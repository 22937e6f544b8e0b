// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/kernels/kernel.hpp>

#include <cstdint>

namespace troupe::cpu {

struct conv_problem;

/// ResNeXt's convolution: 3x3, stride 1, in groups of 4 channels, over images
/// whose channels lie in blocks (channel_blocks.hpp). Libraries leave three
/// quarters of each vector empty. Source: Xie et al., "Aggregated residual
/// transformations", CVPR 2017. Thread rule: any thread.
namespace group_convolution {

/// Whether this machine's loops fit the problem, whose images both lie, or
/// shall lie, in blocks of `block` channels.
bool fits(const conv_problem& p, std::int64_t block);

void forward(kernel_context& ctx, const conv_problem& p, std::int64_t block,
             const float* x, const float* filter, float* out);
void input_gradient(kernel_context& ctx, const conv_problem& p,
                    std::int64_t block, const float* dout, const float* filter,
                    float* dx);
void filter_gradient(kernel_context& ctx, const conv_problem& p,
                     std::int64_t block, const float* x, const float* dout,
                     float* dw);

} // namespace group_convolution

} // namespace troupe::cpu
