// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/cpu/elementwise/broadcast.hpp>

#include <troupe/kernels/cpu/simd/vector_ops.hpp>

#include <algorithm>

namespace troupe::cpu {

namespace {

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

} // namespace

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
