// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/plans/broadcast_plan.hpp>

#include <troupe/kernels/arguments.hpp>

#include <algorithm>

namespace troupe {

namespace {

// Adds ones around `low`, so that it is at `axis` of `rank` extents. Paddle
// drops trailing ones of the smaller operand.
bool place(const shape& low, std::size_t rank, std::int64_t axis, shape& out) {
  const auto extents = static_cast<std::int64_t>(low.rank());
  const std::int64_t first =
    axis < 0 ? static_cast<std::int64_t>(rank) - extents : axis;
  std::array<std::int64_t, shape::max_rank> dims;
  dims.fill(1);
  for (std::int64_t i = 0; i < extents; ++i) {
    const std::int64_t extent = low[static_cast<std::size_t>(i)];
    if (first + i < static_cast<std::int64_t>(rank))
      dims[static_cast<std::size_t>(first + i)] = extent;
    else if (extent != 1)
      return false;
  }
  out = shape(std::span(dims).first(rank));
  return true;
}

void append_axis(broadcast_plan& plan, broadcast_plan::axis next) {
  if (next.extent == 1)
    return;
  if (plan.axis_count > 0) {
    auto& last = plan.all_axes[plan.axis_count - 1];
    if (last.x_step == next.x_step * next.extent
        && last.y_step == next.y_step * next.extent) {
      last = {last.extent * next.extent, next.x_step, next.y_step};
      return;
    }
  }
  plan.all_axes[plan.axis_count++] = next;
}

std::int64_t step_of(const shape& dims, std::size_t axis) {
  return dims[axis] == 1 ? 0 : dims.numel(axis + 1, dims.rank());
}

} // namespace

broadcast_plan plan_broadcast(const shape& x, const shape& y,
                              std::int64_t axis) {
  const std::size_t rank = std::max(x.rank(), y.rank());
  shape wide_x = x;
  shape wide_y = y;
  if ((y.rank() < rank && !place(y, rank, axis, wide_y))
      || (x.rank() < rank && !place(x, rank, axis, wide_x)))
    throw_shapes("X", x, "Y", y, "cannot be aligned at the axis attribute");
  broadcast_plan plan;
  plan.out = wide_x;
  for (std::size_t i = 0; i < rank; ++i) {
    const std::int64_t a = wide_x[i];
    const std::int64_t b = wide_y[i];
    if (a != b && a != 1 && b != 1)
      throw_shapes("X", x, "Y", y, "cannot be broadcast");
    plan.out[i] = a == 1 ? b : a;
    plan.x_repeats = plan.x_repeats || a != plan.out[i];
    plan.y_repeats = plan.y_repeats || b != plan.out[i];
  }
  for (std::size_t i = 0; i < rank; ++i)
    append_axis(plan, {plan.out[i], step_of(wide_x, i), step_of(wide_y, i)});
  if (plan.axis_count == 0)
    plan.all_axes[plan.axis_count++] = {1, 1, 1};
  return plan;
}

} // namespace troupe
