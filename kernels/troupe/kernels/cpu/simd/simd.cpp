// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/cpu/simd/simd.hpp>

#include <oneapi/dnnl/dnnl.h>

#include <cstdio>
#include <cstdlib>

namespace troupe::cpu {

namespace {

#ifdef TROUPE_NO_AVX512
constexpr bool uses_avx512 = false;
// At start-up: it has no effect after the first call of the library.
[[maybe_unused]] const bool limited = [] {
  if (dnnl_set_max_cpu_isa(dnnl_cpu_isa_avx2) != dnnl_success) {
    std::fputs("oneDNN was called before it could be held to AVX2\n", stderr);
    std::abort();
  }
  return true;
}();
#else
constexpr bool uses_avx512 = true;
#endif

vector_level detect() noexcept {
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
  if (uses_avx512 && __builtin_cpu_supports("x86-64-v4"))
    return vector_level::v4;
  if (__builtin_cpu_supports("x86-64-v3"))
    return vector_level::v3;
#endif
  return vector_level::build;
}

} // namespace

vector_level machine_vectors() noexcept {
  static const vector_level level = detect();
  return level;
}

} // namespace troupe::cpu
