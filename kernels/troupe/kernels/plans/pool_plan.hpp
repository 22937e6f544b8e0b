// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/kernels/attribute.hpp>
#include <troupe/kernels/plans/window.hpp>
#include <troupe/kernels/shape.hpp>

#include <cstdint>
#include <vector>

namespace troupe {

/// The attributes of pool2d; throws error(invalid_argument).
struct pool_options {
  explicit pool_options(const attribute_map& attributes);

  bool max = true;
  bool global = false;
  bool adaptive = false;
  bool exclusive = true;
  bool ceil_mode = false;
  std::vector<std::int64_t> ksize;
  attribute_map attributes;
};

/// What one output position covers along one axis.
struct pool_window {
  std::int64_t first = 0; ///< inside the input: [first, last)
  std::int64_t last = 0;
  std::int64_t padded = 0; ///< length with the covered padding
};

/// How pool2d runs on one input shape.
struct pool_plan {
  shape in;
  shape out;
  window_axis rows; ///< unless windows are irregular
  window_axis cols;
  std::vector<pool_window> row_windows;
  std::vector<pool_window> col_windows;
  std::vector<float> col_divisors; ///< for averages, by column
  /// of a row with all padding that windows reach into
  std::int64_t row_size = 0;
  bool pads = false;      ///< row_size is more than a row
  bool irregular = false; ///< adaptive windows of unequal size
  bool whole = false;     ///< one window covers the whole input
  bool tiles_2x2 = false; ///< adjacent 2x2 windows cover the input
  bool exclusive = true;

  /// A window's factor of the divisor of averages. If padding counts, a window
  /// beyond the padding has a factor of 0 or less, as in Paddle.
  float divisor(const pool_window& w) const noexcept {
    if (!exclusive)
      return static_cast<float>(w.padded);
    return static_cast<float>(w.last > w.first ? w.last - w.first : 1);
  }
};

/// Throws error(shape_mismatch) for an input that is not [N, C, H, W] or too
/// small for the windows.
/// Source: Paddle, phi/kernels/funcs/pooling.cc. A window ends at the end of
/// the padded input, where the padding at the end counts as large as that at
/// the beginning. An adaptive window covers
/// [floor(i n / m), ceil((i + 1) n / m)).
pool_plan make_pool_plan(const pool_options& options, const shape& in);

} // namespace troupe
