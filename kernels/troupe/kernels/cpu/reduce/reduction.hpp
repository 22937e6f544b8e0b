// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/kernels/cpu/elementwise/broadcast.hpp>
#include <troupe/kernels/cpu/simd/simd.hpp>
#include <troupe/kernels/kernel.hpp>

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <vector>

namespace troupe::cpu {

/// How X is reduced along some of its axes.
struct reduction {
  shape kept;             ///< X's extents, 1 where reduced
  shape out;              ///< the result's shape
  std::int64_t count = 1; ///< elements of X per result
  broadcast_plan plan;    ///< x side: the result, y side: X
};

/// Reduces `axes`, where negative ones count from the end. If `axes` is empty,
/// or with `all`, all axes are reduced. A scalar has the axes 0 and -1. Throws
/// error(out_of_range).
reduction make_reduction(const shape& x, const std::vector<std::int64_t>& axes,
                         bool all, bool keep);

/// The same from the attributes `dim`, `keep_dim` and `reduce_all`, and inputs
/// AxisTensor or AxisTensorList, if the op has them.
reduction reduction_of(const kernel_context& ctx, const shape& x);

/// A fold is a type with
///
///     template <class A> static A start();
///     template <class A, class T> static A fold(A total, T x, A p);
///     template <class A> static A join(A a, A b);
///
/// where p is a parameter of the op.
template <class Fold>
struct fold_row_loop {
  static constexpr std::int64_t lanes = 16;

  template <class A, class T>
  TROUPE_INLINE static void run(A* total, const T* x, std::int64_t n, A p) {
    A lane[lanes];
    for (A& each : lane)
      each = Fold::template start<A>();
    std::int64_t i = 0;
    for (; i + lanes <= n; i += lanes) {
#pragma omp simd
      for (std::int64_t k = 0; k < lanes; ++k)
        lane[k] = Fold::fold(lane[k], x[i + k], p);
    }
    for (std::int64_t k = 0; i < n; ++i, ++k)
      lane[k] = Fold::fold(lane[k], x[i], p);
    for (const A& each : lane)
      *total = Fold::join(*total, each);
  }
};

template <class Fold>
struct fold_columns_loop {
  template <class A, class T>
  TROUPE_INLINE static void run(A* total, const T* x, std::int64_t n, A p) {
#pragma omp simd
    for (std::int64_t i = 0; i < n; ++i)
      total[i] = Fold::fold(total[i], x[i], p);
  }
};

/// out = the fold of all elements of each result.
template <class Fold, class A, class T>
void fold_all(const reduction& r, A* out, const T* x, A p = A(0)) {
  std::fill_n(out, r.kept.numel(), Fold::template start<A>());
  const auto& last = r.plan.axes().back();
  for_each_row(r.plan, [&](std::int64_t o, std::int64_t i, std::int64_t) {
    if (last.x_step == 0 || last.extent == 1)
      run_simd<fold_row_loop<Fold>>(out + i, x + o, last.extent, p);
    else
      run_simd<fold_columns_loop<Fold>>(out + i, x + o, last.extent, p);
  });
}

/// dx[i] = Op::apply(x[i], out, dout, p), with the result that x[i] contributed
/// to.
template <class Op, bool Varies>
struct spread_loop {
  template <class T>
  TROUPE_INLINE static void run(T* dx, const T* x, const T* out, const T* dout,
                                std::int64_t n, T p) {
    const T out0 = out[0];
    const T dout0 = dout[0];
#pragma omp simd
    for (std::int64_t i = 0; i < n; ++i)
      dx[i] =
        Op::apply(x[i], Varies ? out[i] : out0, Varies ? dout[i] : dout0, p);
  }
};

template <class Op, class T>
void spread_all(const reduction& r, T* dx, const T* x, const T* out,
                const T* dout, T p) {
  const auto& last = r.plan.axes().back();
  for_each_row(r.plan, [&](std::int64_t o, std::int64_t i, std::int64_t) {
    if (last.x_step == 0)
      run_simd<spread_loop<Op, false>>(dx + o, x + o, out + i, dout + i,
                                       last.extent, p);
    else
      run_simd<spread_loop<Op, true>>(dx + o, x + o, out + i, dout + i,
                                      last.extent, p);
  });
}

} // namespace troupe::cpu
