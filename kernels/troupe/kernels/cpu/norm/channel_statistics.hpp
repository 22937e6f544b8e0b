// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/kernels/cpu/layout/stored_values.hpp>
#include <troupe/kernels/cpu/reduce/even_cut.hpp>
#include <troupe/kernels/kernel.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace troupe::cpu {

/// A tensor [samples, channels, pixels], row-major or in blocks of channels:
/// [samples, channels / block, pixels, block]. It may be a part of the channels
/// of a larger tensor.
struct channel_view {
  std::int64_t samples = 0;
  std::int64_t channels = 0;
  std::int64_t pixels = 1;
  std::int64_t block = 0;       ///< 0: row-major; 8 or 16
  std::int64_t sample_step = 0; ///< elements; 0: channels * pixels

  /// The offset of channel `c` of sample `n`. In blocks, `c` is the first
  /// channel of its block.
  std::int64_t at(std::int64_t n, std::int64_t c) const noexcept {
    return n * (sample_step > 0 ? sample_step : channels * pixels) + c * pixels;
  }
  /// Whether each sample is one row of channels.
  bool has_rows() const noexcept { return block == 0 && pixels == 1; }
};

/// Calls `use(channels, first)` for parts of a view of all channels; workers
/// share the parts. The data of a part begins at `first * v.pixels` in the
/// tensor. Rows are not cut.
template <class Use>
void in_channel_parts(const kernel_context& ctx, const channel_view& v,
                      Use use) {
  const auto elements = v.samples * v.channels * v.pixels;
  const auto most =
    v.has_rows() ? 1
                 : worthwhile_parts(ctx.workers(), elements, least_elements);
  const even_cut cut{v.channels, most, std::max<std::int64_t>(1, v.block)};
  ctx.in_parts(cut.parts(), [&](std::size_t i) {
    channel_view part = v;
    part.channels = cut.size(i);
    part.sample_step = v.channels * v.pixels;
    use(part, cut.first(i));
  });
}

/// Mean and biased variance of each channel, of one element at least. Planes
/// are summed in float and combined in double. Here and below, images in blocks
/// may be rounded in memory.
/// Source: Chan, Golub and LeVeque, "Updating formulae and a pairwise algorithm
/// for computing sample variances", 1979.
void channel_moments(const channel_view& v, stored_values x, float* mean,
                     float* variance);

/// y = (x - mean[c]) * factor[c] + bias[c]; y may be x.
void channel_affine(const channel_view& v, stored_results y, stored_values x,
                    const float* mean, const float* factor, const float* bias);

/// Per channel: dot[c] = sum of dy * (x - mean[c]), total[c] = sum of dy.
void channel_gradient_sums(const channel_view& v, stored_values x,
                           stored_values dy, const float* mean, float* dot,
                           float* total);

/// dx = dy_factor[c] * dy + x_factor[c] * (x - mean[c]) + offset[c]; dx may be
/// dy or x.
void channel_combine(const channel_view& v, stored_results dx, stored_values dy,
                     stored_values x, const float* mean, const float* dy_factor,
                     const float* x_factor, const float* offset);

} // namespace troupe::cpu
