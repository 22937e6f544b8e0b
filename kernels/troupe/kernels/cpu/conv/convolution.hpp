// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/kernels/cpu/conv/row_convolution.hpp>
#include <troupe/kernels/cpu/conv/window.hpp>
#include <troupe/kernels/cpu/layout/blocked_primitive.hpp>
#include <troupe/kernels/cpu/layout/channel_blocks.hpp>
#include <troupe/kernels/cpu_kernel_options.hpp>

#include <array>
#include <cstddef>
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
  bool filter_in_blocks = false;   ///< filter_blocks.hpp; else it lies plain
  // How the images that are given lie in memory (channel_blocks.hpp). Of input
  // gradients `in_format` is what their reader wants.
  image_format in_format = {};
  image_format out_format = {};
};

/// Whether two problems of one kernel are the same: only shapes and what the
/// images lie in change from step to step.
bool same_in_kernel(const conv_problem& a, const conv_problem& b) noexcept;

/// What is computed of in, filter, out: out from in and filter; in's gradient
/// from out's and filter; the filter's from in and out's.
enum class conv_direction { forward, input_gradient, filter_gradient };

/// Multiplications of a part that is worth a cut, some 20 us.
constexpr std::int64_t least_conv_part = 1 << 21;

/// In how many parts `workers` threads share the problem.
std::size_t worthwhile_parts(std::size_t workers,
                             const conv_problem& p) noexcept;

/// One direction of one convolution at a time. Thread rule: one thread at a
/// time, any thread.
class convolution {
public:
  explicit convolution(conv_direction direction,
                       const cpu_kernel_options& options = {})
    : direction_(direction), options_(options) {}

  /// Makes what is needed, anew when the problem changes, and returns how the
  /// images that `run` will write lie; filters lie as they are said to. With
  /// factors in bfloat16, images that come out in blocks are rounded, as their
  /// next reader would do. Throws error(kernel_failure).
  image_format prepare(const conv_problem& problem);

  /// Whether a run of the problem is shared by all workers, so that nothing is
  /// gained by cutting it.
  bool shares_its_work(const conv_problem& problem) const;
  /// Of the problem that is prepared, a filter's gradient: whether it would be
  /// in blocks without being brought into another layout.
  bool makes_filter_blocks() const noexcept { return makes_filter_blocks_; }

  /// Computes `result` from two operands in the order of `conv_direction`, of
  /// the problem that is prepared. Throws error(kernel_failure).
  void run(kernel_context& ctx, stored_values a, stored_values b,
           stored_results result);

  /// How the filter is packed before it is multiplied with, if that can be done
  /// for several runs at once; else null.
  const filter_pack* pack() const noexcept;
  /// The same as `run` with a filter that `pack` has packed.
  void run_packed(kernel_context& ctx, stored_values a, const void* packed,
                  stored_results result);

private:
  // Who computes: oneDNN, row_convolution.hpp, group_convolution.hpp or
  // winograd_convolution.hpp.
  enum class method : std::uint8_t { library, rows, groups, winograd };

  bool takes_groups(const conv_problem& problem) const;
  bool takes_winograd(const conv_problem& problem) const;
  method method_for(const conv_problem& problem) const;
  void make_direct(const conv_problem& problem);
  void run_rows(kernel_context& ctx, const float* a, const float* b,
                float* result) const;
  void run_groups(kernel_context& ctx, stored_values a, stored_values b,
                  stored_results result) const;
  void run_winograd(kernel_context& ctx, stored_values a, stored_values b,
                    stored_results result) const;

  conv_direction direction_;
  cpu_kernel_options options_;
  conv_problem prepared_;
  bool ready_ = false;
  image_format result_;
  method method_ = method::library;
  row_convolution rows_;
  blocked_primitive primitive_;
  bool makes_filter_blocks_ = false;
};

} // namespace troupe::cpu
