// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace troupe::cpu {

/// A convolution of plain images as sums over taps (an input channel and a
/// position in the filter) of shifted rows. Output pixels are taken in vectors
/// of 8 neighbours: vector v of a plane lies at `out_offsets[v]` of the output
/// and sees tap k of a sample at `in_offsets[v] + tap_offsets[k]`.
struct row_conv_shape {
  std::int64_t samples = 0;
  std::int64_t filters = 0; ///< that are computed here
  std::int64_t taps = 0;
  std::int64_t vectors = 0;
  std::int64_t in_size = 0;   ///< elements of a sample of the input
  std::int64_t out_size = 0;  ///< of the output, of all filters
  std::int64_t out_plane = 0; ///< pixels of an output channel
  const std::int32_t* tap_offsets = nullptr;
  const std::int32_t* in_offsets = nullptr;
  const std::int32_t* out_offsets = nullptr;
};

/// Filters that the forward loop computes side by side, and taps that the one
/// back to the input does.
constexpr std::int64_t row_conv_filters = 5;
constexpr std::int64_t row_conv_taps = 5;

/// The loops for one instruction set.
struct row_conv_loops {
  /// `packed` holds the filters in groups of `row_conv_filters`, the last one
  /// filled up with zeros: [groups, taps, row_conv_filters].
  void (*forward)(const row_conv_shape& s, const float* x, const float* packed,
                  float* out);
  /// dx += the gradient. `packed` holds the taps in groups of `row_conv_taps`,
  /// the last one filled up: [groups, filters, row_conv_taps].
  void (*input_gradient)(const row_conv_shape& s, const float* dout,
                         const float* packed, float* dx);
  /// dw [filters, taps] += the gradient.
  void (*filter_gradient)(const row_conv_shape& s, const float* x,
                          const float* dout, float* dw);
};

extern const row_conv_loops row_conv_loops_v4;
extern const row_conv_loops row_conv_loops_v3;

} // namespace troupe::cpu
