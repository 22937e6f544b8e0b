// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace troupe::cpu {

/// Channels per group, and the width of the filter.
constexpr std::int64_t conv_group = 4;
constexpr std::int64_t conv_group_taps = 3;

/// `lanes` channels of an image: pixel i is at [i * stride].
struct group_plane {
  std::int64_t height = 0;
  std::int64_t width = 0; ///< at least 8
  std::int64_t stride = 0;
};

/// Loops of a 3x3 convolution in groups of 4 channels, stride 1, padding 1, for
/// one instruction set. A vector holds `lanes` channels of one pixel, which are
/// whole groups. Weights are [3, 3, 4, lanes].
struct group_conv_loops {
  std::int64_t lanes;
  /// out[p] = sum over taps and j of x[p + tap][channel j of the lane's group]
  /// times w[tap][j].
  void (*convolve)(const group_plane& p, const float* x, const float* w,
                   float* out);
  /// dw[tap][j] += sum over pixels of dout[p] times
  /// x[p + tap][channel j of the lane's group].
  void (*weigh)(const group_plane& p, const float* x, const float* dout,
                float* dw);
};

extern const group_conv_loops group_conv_loops_v4; ///< 16 lanes
extern const group_conv_loops group_conv_loops_v3; ///< 8 lanes

} // namespace troupe::cpu
