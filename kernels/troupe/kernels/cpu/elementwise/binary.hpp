// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/kernels/cpu/elementwise/broadcast.hpp>
#include <troupe/kernels/cpu/simd/simd.hpp>

#include <cstdint>

namespace troupe::cpu {

/// out[i] = Op::apply(x, y). An operand that does not vary is one value.
template <class Op, bool XVaries, bool YVaries>
struct binary_loop {
  template <class R, class T>
  TROUPE_INLINE static void run(R* out, const T* x, const T* y,
                                std::int64_t n) {
    const T x0 = x[0];
    const T y0 = y[0];
#pragma omp simd
    for (std::int64_t i = 0; i < n; ++i)
      out[i] = Op::apply(XVaries ? x[i] : x0, YVaries ? y[i] : y0);
  }
};

/// dx[i] = Op::apply(x, y, dout[i]).
template <class Op, bool XVaries, bool YVaries>
struct binary_gradient_loop {
  template <class T>
  TROUPE_INLINE static void run(T* dx, const T* x, const T* y, const T* dout,
                                std::int64_t n) {
    const T x0 = x[0];
    const T y0 = y[0];
#pragma omp simd
    for (std::int64_t i = 0; i < n; ++i)
      dx[i] = Op::apply(XVaries ? x[i] : x0, YVaries ? y[i] : y0, dout[i]);
  }
};

/// Out = Op(X, Y) along the plan. `out` may be `x` or `y` if that operand is
/// not repeated.
template <class Op, class R, class T>
void apply_broadcast(const broadcast_plan& plan, R* out, const T* x,
                     const T* y) {
  const auto& last = plan.axes().back();
  const std::int64_t n = last.extent;
  for_each_row(plan, [&](std::int64_t o, std::int64_t i, std::int64_t j) {
    if (last.y_step == 0)
      run_simd<binary_loop<Op, true, false>>(out + o, x + i, y + j, n);
    else if (last.x_step == 0)
      run_simd<binary_loop<Op, false, true>>(out + o, x + i, y + j, n);
    else
      run_simd<binary_loop<Op, true, true>>(out + o, x + i, y + j, n);
  });
}

/// term = Op(X, Y, dOut) along the plan. term and dout have Out's shape.
template <class Op, class T>
void apply_gradient(const broadcast_plan& plan, T* term, const T* x, const T* y,
                    const T* dout) {
  const auto& last = plan.axes().back();
  const std::int64_t n = last.extent;
  for_each_row(plan, [&](std::int64_t o, std::int64_t i, std::int64_t j) {
    T* to = term + o;
    const T* d = dout + o;
    if (last.y_step == 0 && last.x_step != 0)
      run_simd<binary_gradient_loop<Op, true, false>>(to, x + i, y + j, d, n);
    else if (last.x_step == 0 && last.y_step != 0)
      run_simd<binary_gradient_loop<Op, false, true>>(to, x + i, y + j, d, n);
    else
      run_simd<binary_gradient_loop<Op, true, true>>(to, x + i, y + j, d, n);
  });
}

} // namespace troupe::cpu
