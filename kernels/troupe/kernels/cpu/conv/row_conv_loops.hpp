// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace troupe::cpu {

/// A convolution of plain images as a sum of shifted rows over taps. A tap is
/// an input channel and a position in the filter. A vector is 8 neighbouring
/// output pixels: vector v is at `out_offsets[v]` of an output plane; for tap k
/// it reads the sample at `in_offsets[v] + tap_offsets[k]`.
struct row_conv_shape {
  std::int64_t samples = 0;
  std::int64_t filters = 0; ///< how many this call computes
  std::int64_t taps = 0;
  std::int64_t vectors = 0;
  std::int64_t in_size = 0; ///< elements per sample of the input
  /// elements per sample of the output, all filters
  std::int64_t out_size = 0;
  std::int64_t out_plane = 0; ///< pixels of one output channel
  const std::int32_t* tap_offsets = nullptr;
  const std::int32_t* in_offsets = nullptr;
  const std::int32_t* out_offsets = nullptr;
};

/// How many filters the forward loop computes side by side, and how many taps
/// the input gradient.
constexpr std::int64_t row_conv_filters = 5;
constexpr std::int64_t row_conv_taps = 5;

/// The loops for one instruction set.
struct row_conv_loops {
  /// `packed` holds the filters in groups of `row_conv_filters`, the last one
  /// padded with zeros: [groups, taps, row_conv_filters].
  void (*forward)(const row_conv_shape& s, const float* x, const float* packed,
                  float* out);
  /// dx += the gradient. `packed` holds the taps in groups of `row_conv_taps`,
  /// the last one padded with zeros: [groups, filters, row_conv_taps].
  void (*input_gradient)(const row_conv_shape& s, const float* dout,
                         const float* packed, float* dx);
  /// dw [filters, taps] += the gradient.
  void (*filter_gradient)(const row_conv_shape& s, const float* x,
                          const float* dout, float* dw);
};

extern const row_conv_loops row_conv_loops_v4;
extern const row_conv_loops row_conv_loops_v3;

} // namespace troupe::cpu
