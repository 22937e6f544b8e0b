// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/kernels/cpu/norm/channel_statistics.hpp>

/// The loops of channel_statistics.hpp for images in blocks of channels
/// (channel_blocks.hpp): `v.block` is 8 or 16. A vector holds the channels of
/// one pixel.
namespace troupe::cpu::blocked {

void moments(const channel_view& v, stored_values x, float* mean,
             float* variance);

/// y has the layout of x; below, so has dx.
void affine(const channel_view& v, stored_results y, stored_values x,
            const float* mean, const float* factor, const float* bias);

void gradient_sums(const channel_view& v, stored_values x, stored_values dy,
                   const float* mean, float* dot, float* total);

void combine(const channel_view& v, stored_results dx, stored_values dy,
             stored_values x, const float* mean, const float* dy_factor,
             const float* x_factor, const float* offset);

} // namespace troupe::cpu::blocked
