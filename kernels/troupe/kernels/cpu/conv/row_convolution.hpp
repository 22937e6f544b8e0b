// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/kernels/cpu/conv/row_conv_loops.hpp>
#include <troupe/kernels/kernel.hpp>

#include <cstdint>
#include <vector>

namespace troupe::cpu {

struct conv_problem;

/// Convolutions of plain images with few channels, which would leave most of a
/// library's blocks empty: sums of shifted rows over taps, without unfolding.
/// Thread rule: one thread at a time, any thread.
class row_convolution {
public:
  /// Whether this machine's loops support the problem: at least AVX2; plain
  /// images; one group; fewer than 32 input channels; output channels that are
  /// no multiple of 16; a filter of several taps with stride 1, no dilation and
  /// no padding; output rows of a multiple of 8 pixels.
  static bool fits(const conv_problem& p);

  /// Plans for a problem that fits.
  void prepare(const conv_problem& p);

  void forward(kernel_context& ctx, const float* x, const float* filter,
               float* out) const;
  void input_gradient(kernel_context& ctx, const float* dout,
                      const float* filter, float* dx) const;
  void filter_gradient(kernel_context& ctx, const float* x, const float* dout,
                       float* dw) const;

private:
  row_conv_shape shape() const;

  row_conv_shape shape_;
  std::vector<std::int32_t> tap_offsets_;
  // The same taps sorted by position in the filter, for sums that are written
  // one after the other. In channel order, neighbouring taps would write
  // overlapping pixels, and each would wait for the one before.
  std::vector<std::int32_t> scattered_taps_;
  std::vector<std::int32_t> scattered_offsets_;
  std::vector<std::int32_t> in_offsets_;
  std::vector<std::int32_t> out_offsets_;
};

} // namespace troupe::cpu
