// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/kernels/cpu/optimizer/in_ranges.hpp>
#include <troupe/kernels/plans/broadcast_plan.hpp>

#include <cstddef>
#include <cstdint>

namespace troupe::cpu {

/// Where the operands of one part of a plan begin.
struct broadcast_offsets {
  std::int64_t out = 0;
  std::int64_t x = 0;
  std::int64_t y = 0;
};

/// Calls `use(plan of a part, its offsets)`. Parts are cut along the first
/// axis, and workers share them.
template <class Use>
void in_broadcast_parts(const kernel_context& ctx, const broadcast_plan& plan,
                        Use use) {
  const auto& first_axis = plan.axes().front();
  const auto elements = plan.out.numel();
  if (elements == 0)
    return;
  const auto step = elements / first_axis.extent;
  in_rows(ctx, first_axis.extent, step,
          [&](std::int64_t first, std::int64_t count) {
            broadcast_plan part = plan;
            part.all_axes[0].extent = count;
            use(part, broadcast_offsets{first * step, first * first_axis.x_step,
                                        first * first_axis.y_step});
          });
}

/// dx[i] = scale * the sum of dout over all outputs that X's element i
/// contributes to. dout has Out's elements, dx has `dx_size`.
void reduce_to_x(const broadcast_plan& plan, const float* dout, float scale,
                 float* dx, std::int64_t dx_size);
void reduce_to_x(const broadcast_plan& plan, const double* dout, double scale,
                 double* dx, std::int64_t dx_size);
void reduce_to_x(const broadcast_plan& plan, const std::int32_t* dout,
                 std::int32_t scale, std::int32_t* dx, std::int64_t dx_size);
void reduce_to_x(const broadcast_plan& plan, const std::int64_t* dout,
                 std::int64_t scale, std::int64_t* dx, std::int64_t dx_size);

/// Calls `row(out_offset, x_offset, y_offset)` for every run along the last
/// axis, in the order of Out's elements.
template <class Row>
void for_each_row(const broadcast_plan& plan, Row row) {
  const auto axes = plan.axes();
  const std::size_t outer = axes.size() - 1;
  std::int64_t index[shape::max_rank] = {};
  std::int64_t out = 0;
  std::int64_t x = 0;
  std::int64_t y = 0;
  if (plan.out.numel() == 0)
    return;
  for (;;) {
    row(out, x, y);
    out += axes[outer].extent;
    std::size_t i = outer;
    for (; i > 0; --i) {
      const auto& a = axes[i - 1];
      x += a.x_step;
      y += a.y_step;
      if (++index[i - 1] < a.extent)
        break;
      x -= a.x_step * a.extent;
      y -= a.y_step * a.extent;
      index[i - 1] = 0;
    }
    if (i == 0)
      return;
  }
}

} // namespace troupe::cpu
