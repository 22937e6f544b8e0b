// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/kernels/attribute.hpp>

#include <array>
#include <cstdint>

namespace troupe::ref {

/// A kernel that slides along one spatial axis.
struct sliding {
  std::int64_t extent = 1; ///< of the kernel
  std::int64_t stride = 1;
  std::int64_t dilation = 1;
  std::int64_t before = 0; ///< padding
  std::int64_t after = 0;

  /// The number of positions on an axis of `length`: (length + padding -
  /// (dilation (extent - 1) + 1)) / stride + 1, rounded up if `ceil_mode`.
  /// Throws error(shape_mismatch) if there is none.
  std::int64_t positions(std::int64_t length, bool ceil_mode = false) const;
};

/// Reads strides, paddings ([h, w] or [top, bottom, left, right]), dilations
/// and padding_algorithm for the axes height and width.
/// Source: Paddle, UpdatePaddingAndDilation: SAME pads to ceil(length / stride)
/// positions, with the odd element at the end, and sets the dilation to 1;
/// VALID pads nothing.
std::array<sliding, 2> read_sliding(const attribute_map& attributes,
                                    std::array<std::int64_t, 2> length,
                                    std::array<std::int64_t, 2> extent);

} // namespace troupe::ref
