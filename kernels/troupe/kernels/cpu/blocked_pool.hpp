// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/kernels/cpu/pool_plan.hpp>

#include <cstdint>

/// pool2d over images whose channels lie in blocks of 8 or 16
/// (channel_blocks.hpp), for any window of a plan. One vector holds the
/// channels of a pixel. NaN and equal maxima are treated as by pool2d.cpp.
namespace troupe::cpu::blocked {

void pool(const pool_plan& p, bool max, std::int64_t block, const float* x,
          float* out);

/// Writes all of `dx`.
void pool_gradient(const pool_plan& p, bool max, std::int64_t block,
                   const float* x, const float* dout, float* dx);

} // namespace troupe::cpu::blocked
