// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/kernels/cpu/channel_statistics.hpp>

/// The loops of channel_statistics.hpp over images whose channels lie in blocks
/// (channel_blocks.hpp): `v.block` is 8 or 16. One vector holds the channels of
/// a pixel.
namespace troupe::cpu::blocked {

void moments(const channel_view& v, const float* x, float* mean,
             float* variance);

void affine(const channel_view& v, float* y, const float* x, const float* mean,
            const float* factor, const float* bias);

void gradient_sums(const channel_view& v, const float* x, const float* dy,
                   const float* mean, float* dot, float* total);

void combine(const channel_view& v, float* dx, const float* dy, const float* x,
             const float* mean, const float* dy_factor, const float* x_factor,
             const float* offset);

} // namespace troupe::cpu::blocked
