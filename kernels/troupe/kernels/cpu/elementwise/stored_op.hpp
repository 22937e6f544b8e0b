// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/kernels/cpu/layout/stored_values.hpp>
#include <troupe/kernels/cpu/simd/simd.hpp>

#include <cstdint>

namespace troupe::cpu {

template <class Op>
struct stored_op_loop {
  template <class X, class Y>
  TROUPE_INLINE static void run(X* to, const X* x, const Y* y, std::int64_t n) {
#pragma omp simd
    for (std::int64_t i = 0; i < n; ++i)
      store(to[i], Op::apply(value_of(x[i]), value_of(y[i])));
  }
};

/// to[i] = Op::apply(x[i], y[i]) for `n` values, in float32. `to` must be
/// stored as x is, which is asserted, and may be x.
template <class Op>
void apply_stored(stored_results to, stored_values x, stored_values y,
                  std::int64_t n) {
  visit_alike(to, x, [&](auto* out, const auto* a) {
    y.visit([&](const auto* b) { run_simd<stored_op_loop<Op>>(out, a, b, n); });
  });
}

} // namespace troupe::cpu
