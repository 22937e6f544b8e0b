// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/kernels/attribute.hpp>

#include <array>
#include <cstdint>

namespace troupe::cpu {

/// The most that strides, dilations, paddings and sizes of kernels may be: what
/// a file says is checked before work is planned by it.
inline constexpr std::int64_t largest_window = std::int64_t{1} << 20;

/// A kernel that slides along one spatial axis.
struct window_axis {
  std::int64_t length = 0; ///< of the input
  std::int64_t extent = 1; ///< of the kernel
  std::int64_t stride = 1;
  std::int64_t dilation = 1;
  std::int64_t before = 0; ///< padding
  std::int64_t after = 0;

  /// Positions of the kernel; throws error(shape_mismatch) if it does not fit.
  std::int64_t positions(bool ceil_mode = false) const;
};

/// Height and width of a convolution or pooling from strides, paddings ([h, w]
/// or [top, bottom, left, right]), dilations and padding_algorithm. Throws
/// error(invalid_argument).
/// Source: Paddle, UpdatePaddingAndDilation: SAME pads to
/// ceil(length / stride) positions, the odd element behind, and undoes the
/// dilation; VALID pads nothing.
std::array<window_axis, 2> read_window(const attribute_map& attributes,
                                       std::array<std::int64_t, 2> length,
                                       std::array<std::int64_t, 2> extent);

} // namespace troupe::cpu
