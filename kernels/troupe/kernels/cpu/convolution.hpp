// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/kernels/cpu/blocked_primitive.hpp>
#include <troupe/kernels/cpu/window.hpp>
#include <troupe/kernels/kernel.hpp>

#include <array>
#include <cstdint>

namespace troupe::cpu {

/// A convolution of images. The extents are in this order wherever the channels
/// lie in memory.
struct conv_problem {
  shape in;     ///< [samples, channels, height, width]
  shape filter; ///< [filters, channels / groups, height, width]
  shape out;    ///< [samples, filters, height, width]
  std::int64_t groups = 1;
  std::array<window_axis, 2> axes; ///< how the filter slides over `in`
  bool channels_last = false;      ///< of `in` and `out`
};

/// What is computed of in, filter, out: out from in and filter; in's gradient
/// from out's and filter; the filter's from in and out's.
enum class conv_direction { forward, input_gradient, filter_gradient };

/// One direction of one convolution at a time. Thread rule: one thread at a
/// time, any thread.
class convolution {
public:
  explicit convolution(conv_direction direction) : direction_(direction) {}

  /// Computes `result` from two operands in the order of `conv_direction`.
  /// What the library needs is made anew when the problem changes. Throws
  /// error(kernel_failure).
  void run(kernel_context& ctx, const conv_problem& problem, const float* a,
           const float* b, float* result);

private:
  void prepare(const conv_problem& problem);

  conv_direction direction_;
  conv_problem prepared_;
  bool ready_ = false;
  blocked_primitive primitive_;
};

} // namespace troupe::cpu
