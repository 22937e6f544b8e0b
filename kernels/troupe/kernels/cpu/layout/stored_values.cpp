// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/cpu/layout/stored_values.hpp>

namespace troupe::cpu {

namespace {

struct copy_loop {
  template <class To, class From>
  TROUPE_INLINE static void run(To* to, const From* from, std::int64_t n) {
#pragma omp simd
    for (std::int64_t i = 0; i < n; ++i)
      store(to[i], value_of(from[i]));
  }
};

} // namespace

void copy_stored(stored_results to, stored_values from, std::int64_t n) {
  to.visit([&](auto* target) {
    from.visit(
      [&](const auto* source) { run_simd<copy_loop>(target, source, n); });
  });
}

} // namespace troupe::cpu
