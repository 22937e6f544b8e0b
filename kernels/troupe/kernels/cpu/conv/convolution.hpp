// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/kernels/cpu/conv/row_convolution.hpp>
#include <troupe/kernels/cpu/layout/blocked_primitive.hpp>
#include <troupe/kernels/cpu/layout/channel_blocks.hpp>
#include <troupe/kernels/kernel_options.hpp>
#include <troupe/kernels/plans/window.hpp>

#include <array>
#include <cstddef>
#include <cstdint>

namespace troupe::cpu {

/// A convolution of images. All shapes have the channels second, also if
/// `channels_last`.
struct conv_problem {
  shape in;     ///< [samples, channels, height, width]
  shape filter; ///< [filters, channels / groups, height, width]
  shape out;    ///< [samples, filters, height, width]
  std::int64_t groups = 1;
  std::array<window_axis, 2> axes; ///< how the filter slides over `in`
  bool channels_last = false;      ///< of `in` and `out`
  bool filter_in_blocks = false;   ///< as in filter_blocks.hpp; else plain
  // How the operands lie in memory (channel_blocks.hpp). For input gradients,
  // `in_format` is the format in which the result is wanted.
  image_format in_format = {};
  image_format out_format = {};
};

/// Whether two problems of one kernel are the same. Only shapes and layouts are
/// compared: nothing else changes from step to step.
bool same_in_kernel(const conv_problem& a, const conv_problem& b) noexcept;

/// What is computed: `forward`: out from in and filter; `input_gradient`: in's
/// gradient from out's gradient and filter; `filter_gradient`: the filter's
/// gradient from in and out's gradient.
enum class conv_direction { forward, input_gradient, filter_gradient };

/// The least number of multiplications per part that makes a cut worthwhile,
/// some 20 us.
constexpr std::int64_t least_conv_part = 1 << 21;

/// The number of parts in which `workers` threads should share the problem.
std::size_t worthwhile_parts(std::size_t workers,
                             const conv_problem& p) noexcept;

/// A convolution in one direction. Thread rule: one thread at a time, any
/// thread.
class convolution {
public:
  explicit convolution(conv_direction direction,
                       const kernel_options& options = {})
    : direction_(direction), options_(options) {}

  /// Plans for `problem`, anew only if it has changed, and returns the format
  /// of the images that `run` will write. Filters have the layout that the
  /// problem states. With bfloat16 factors, images that are written in blocks
  /// are rounded, as their next reader would round them anyway. Throws
  /// error(kernel_failure).
  image_format prepare(const conv_problem& problem);

  /// Whether `run` itself shares the problem among all workers, so that cutting
  /// it into parts gains nothing.
  bool shares_its_work(const conv_problem& problem) const;
  /// For the filter gradient of the prepared problem: whether `run` produces
  /// the layout of filter_blocks.hpp without a reorder.
  bool makes_filter_blocks() const noexcept { return makes_filter_blocks_; }

  /// Computes `result` for the prepared problem from two operands, in the order
  /// that `conv_direction` lists them. Throws error(kernel_failure).
  void run(kernel_context& ctx, stored_values a, stored_values b,
           stored_results result);

  /// How the filter is packed before the multiplication, if several runs can
  /// share a packed filter; else null.
  const filter_pack* pack() const noexcept;
  /// As `run`, with a filter that `pack` has packed.
  void run_packed(kernel_context& ctx, stored_values a, const void* packed,
                  stored_results result);

private:
  // The implementation: oneDNN, row_convolution.hpp, group_convolution.hpp or
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
  kernel_options options_;
  conv_problem prepared_;
  bool ready_ = false;
  image_format result_;
  method method_ = method::library;
  row_convolution rows_;
  blocked_primitive primitive_;
  bool makes_filter_blocks_ = false;
};

} // namespace troupe::cpu
