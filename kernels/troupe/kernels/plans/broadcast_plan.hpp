// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/kernels/shape.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace troupe {

/// How elements of X and Y are paired in Out = f(X, Y). Adjacent axes that
/// behave alike are merged. A step of 0 repeats the operand along the axis.
/// Only the last axis has steps of 0 or 1.
struct broadcast_plan {
  struct axis {
    std::int64_t extent = 1;
    std::int64_t x_step = 0; ///< elements between neighbours along the axis
    std::int64_t y_step = 0;
  };
  /// Outermost first, never empty.
  std::span<const axis> axes() const noexcept {
    return {all_axes.data(), axis_count};
  }

  shape out;
  /// the first `axis_count` are used
  std::array<axis, shape::max_rank> all_axes;
  std::size_t axis_count = 0;
  bool x_repeats = false; ///< some axis has x_step 0
  bool y_repeats = false;
};

/// Plans a broadcast by Paddle's rule: the operand of lower rank is placed at
/// `axis` of the other (-1: at its end), and extents of 1 are repeated. Throws
/// error(shape_mismatch).
broadcast_plan plan_broadcast(const shape& x, const shape& y,
                              std::int64_t axis);

} // namespace troupe
