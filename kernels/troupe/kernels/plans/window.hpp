// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/kernels/attribute.hpp>

#include <array>
#include <cstdint>

namespace troupe {

/// The upper limit of strides, dilations, paddings and kernel sizes. Values
/// from a file are checked before memory or work depends on them.
inline constexpr std::int64_t largest_window = std::int64_t{1} << 20;

/// A kernel that slides along one spatial axis.
struct window_axis {
  std::int64_t length = 0; ///< of the input
  std::int64_t extent = 1; ///< of the kernel
  std::int64_t stride = 1;
  std::int64_t dilation = 1;
  std::int64_t before = 0; ///< padding
  std::int64_t after = 0;

  /// The number of positions of the kernel. Throws error(shape_mismatch) if it
  /// does not fit.
  std::int64_t positions(bool ceil_mode = false) const;
};

/// Height and width of a convolution or pooling from strides, paddings ([h, w]
/// or [top, bottom, left, right]), dilations and padding_algorithm. Throws
/// error(invalid_argument). Source: Paddle, UpdatePaddingAndDilation: SAME pads
/// to ceil(length / stride) positions, with the odd element at the end, and
/// sets the dilation to 1; VALID pads nothing.
std::array<window_axis, 2> read_window(const attribute_map& attributes,
                                       std::array<std::int64_t, 2> length,
                                       std::array<std::int64_t, 2> extent);

} // namespace troupe
