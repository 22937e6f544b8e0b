// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace troupe::cpu {

/// A tensor [samples, channels, pixels], row-major, or with its channels in
/// blocks: [samples, channels / block, pixels, block].
struct channel_view {
  std::int64_t samples = 0;
  std::int64_t channels = 0;
  std::int64_t pixels = 1;
  std::int64_t block = 0; ///< 0: row-major; 8 or 16
};

/// Mean and biased variance of each channel, with at least one element each.
/// Planes are summed up in float and joined in double.
/// Source: Chan, Golub and LeVeque, "Updating formulae and a pairwise
/// algorithm for computing sample variances", 1979.
void channel_moments(const channel_view& v, const float* x, float* mean,
                     float* variance);

/// y = (x - mean[c]) * factor[c] + bias[c]; y may be x.
void channel_affine(const channel_view& v, float* y, const float* x,
                    const float* mean, const float* factor, const float* bias);

/// Per channel: dot[c] = sum of dy * (x - mean[c]), total[c] = sum of dy.
void channel_gradient_sums(const channel_view& v, const float* x,
                           const float* dy, const float* mean, float* dot,
                           float* total);

/// dx = dy_factor[c] * dy + x_factor[c] * (x - mean[c]) + offset[c]; dx may be
/// dy or x.
void channel_combine(const channel_view& v, float* dx, const float* dy,
                     const float* x, const float* mean, const float* dy_factor,
                     const float* x_factor, const float* offset);

} // namespace troupe::cpu
