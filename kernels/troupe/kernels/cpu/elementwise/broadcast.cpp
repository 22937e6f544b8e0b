// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/cpu/elementwise/broadcast.hpp>

#include <troupe/kernels/cpu/arguments.hpp>
#include <troupe/kernels/cpu/simd/vector_ops.hpp>

#include <algorithm>

namespace troupe::cpu {

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

// Integers are summed as unsigned, so that sums wrap around.
template <class Sum, class T>
void reduce_plainly(const broadcast_plan& plan, const T* dout, T scale, T* dx,
                    std::int64_t dx_size) {
  std::fill_n(dx, dx_size, T(0));
  const auto last = plan.axes().back();
  const auto factor = static_cast<Sum>(scale);
  for_each_row(plan, [&](std::int64_t o, std::int64_t i, std::int64_t) {
    const T* from = dout + o;
    if (last.x_step == 0) {
      Sum total = 0;
      for (std::int64_t k = 0; k < last.extent; ++k)
        total += static_cast<Sum>(from[k]);
      dx[i] = static_cast<T>(static_cast<Sum>(dx[i]) + factor * total);
    } else {
      for (std::int64_t k = 0; k < last.extent; ++k)
        dx[i + k] = static_cast<T>(static_cast<Sum>(dx[i + k])
                                   + factor * static_cast<Sum>(from[k]));
    }
  });
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

void reduce_to_x(const broadcast_plan& plan, const float* dout, float scale,
                 float* dx, std::int64_t dx_size) {
  const auto axes = plan.axes();
  if (axes.size() == 2 && axes[0].x_step == 0 && axes[1].x_step == 1) {
    sum_rows(dx, dout, axes[0].extent, axes[1].extent);
    return scale_add(dx, dx, scale, 0.0f, dx_size);
  }
  fill(dx, dx_size, 0.0f);
  const auto last = axes.back();
  for_each_row(plan, [&](std::int64_t o, std::int64_t i, std::int64_t) {
    if (last.x_step == 0)
      dx[i] += scale * static_cast<float>(sum(dout + o, last.extent));
    else
      accumulate(dx + i, dout + o, scale, last.extent);
  });
}

void reduce_to_x(const broadcast_plan& plan, const double* dout, double scale,
                 double* dx, std::int64_t dx_size) {
  reduce_plainly<double>(plan, dout, scale, dx, dx_size);
}

void reduce_to_x(const broadcast_plan& plan, const std::int32_t* dout,
                 std::int32_t scale, std::int32_t* dx, std::int64_t dx_size) {
  reduce_plainly<std::uint32_t>(plan, dout, scale, dx, dx_size);
}

void reduce_to_x(const broadcast_plan& plan, const std::int64_t* dout,
                 std::int64_t scale, std::int64_t* dx, std::int64_t dx_size) {
  reduce_plainly<std::uint64_t>(plan, dout, scale, dx, dx_size);
}

} // namespace troupe::cpu
