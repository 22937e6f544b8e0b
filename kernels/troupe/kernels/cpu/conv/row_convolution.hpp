// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/kernels/cpu/conv/row_conv_loops.hpp>
#include <troupe/kernels/kernel.hpp>

#include <cstdint>
#include <vector>

namespace troupe::cpu {

struct conv_problem;

/// Convolutions of plain images with few channels, whose filters fill no blocks
/// of a library: sums over taps of shifted rows, nothing is unfolded. Thread
/// rule: one thread at a time, any thread.
class row_convolution {
public:
  /// Whether this machine's loops fit the problem: AVX2 at least, dense filters
  /// of more than one tap that slide by one pixel inside of the image, rows of
  /// a multiple of 8 output pixels.
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
  // The same in another order, place by place in the window, for sums that are
  // written one after the other: those of neighbours in a row would overlap,
  // and each would wait for the one before.
  std::vector<std::int32_t> scattered_taps_;
  std::vector<std::int32_t> scattered_offsets_;
  std::vector<std::int32_t> in_offsets_;
  std::vector<std::int32_t> out_offsets_;
};

} // namespace troupe::cpu
