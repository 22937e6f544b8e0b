// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/kernels/plans/pool_plan.hpp>

#include <cstdint>

namespace troupe::cpu {

class stored_values;

/// Factors per channel, for one block of channels.
struct block_factors {
  const float* mean;
  const float* dy_factor;
  const float* x_factor;
  const float* offset;
};

/// What one block of channels is normalized with, per channel.
struct block_norm {
  const float* mean;
  const float* factor;
  const float* bias;
};

/// One plane of pool2d: output pixel (i, j) covers rows `rows[i]` and columns
/// `cols[j]` of an input that is `width` pixels wide.
struct block_windows {
  const pool_window* rows;
  std::int64_t row_count;
  const pool_window* cols;
  std::int64_t col_count;
  std::int64_t width;
  const float* row_divisors; ///< for averages; null: maximum
  const float* col_divisors;
};

/// Values of a plane, in memory float32 or rounded to bfloat16. It has no
/// member functions, because the loops are compiled for several instruction
/// sets.
struct block_plane {
  const void* at = nullptr;
  bool rounded = false;
};

/// Inner loops over planes [pixels, block] of images in blocks of channels
/// (channel_blocks.hpp), for one block size and one instruction set. Vectors
/// hold the channels of a pixel. Results have the layout of x and are rounded
/// if x is.
struct block_loops {
  /// The mean of `n` pixels and the sum of squared distances from it.
  void (*moments)(block_plane x, std::int64_t n, float* mean, float* squares);
  /// dot = sum of dy * (x - mean), total = sum of dy.
  void (*gradient_sums)(block_plane x, block_plane dy, std::int64_t n,
                        const float* mean, float* dot, float* total);
  /// y = (x - mean) * factor + bias; y may be x.
  void (*affine)(void* y, block_plane x, std::int64_t n,
                 const block_norm& norm);
  /// dx = dy_factor * dy + x_factor * (x - mean) + offset; dx may be dy or x.
  void (*combine)(void* dx, block_plane dy, block_plane x, std::int64_t n,
                  const block_factors& with);
  /// y = relu(affine of x + z); z may be null.
  void (*affine_relu)(void* y, block_plane x, block_plane z, std::int64_t n,
                      const block_norm& norm);
  /// As without relu, but dy counts only where the affine function of x is
  /// positive.
  void (*relu_gradient_sums)(block_plane x, block_plane dy, std::int64_t n,
                             const block_norm& norm, float* dot, float* total);
  void (*relu_combine)(void* dx, block_plane dy, block_plane x, std::int64_t n,
                       const block_norm& norm, const block_factors& with);
  /// For float32.
  void (*pool)(const block_windows& w, const float* x, float* out);
  /// Adds to `dx`, for float32. NaN is the maximum if there is one; of equal
  /// values the first counts.
  void (*pool_gradient)(const block_windows& w, const float* x,
                        const float* dout, float* dx);
};

// Compiled for x86-64-v4 (AVX-512), x86-64-v3 (AVX2 and FMA) and the build's
// own target. If the compiler lacks the first two, only for the last.
extern const block_loops block_loops_v4_16;
extern const block_loops block_loops_v3_8;
extern const block_loops block_loops_v3_16;
extern const block_loops block_loops_build_8;
extern const block_loops block_loops_build_16;

/// The plane whose first value is `values`.
block_plane plane_at(const stored_values& values) noexcept;

/// The fastest for this machine; `block` is 8 or 16.
const block_loops& block_loops_of(std::int64_t block) noexcept;

} // namespace troupe::cpu
