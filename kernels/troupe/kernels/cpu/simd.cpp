// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/cpu/simd.hpp>

namespace troupe::cpu {

namespace {

vector_level detect() noexcept {
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)            \
  && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  if (__builtin_cpu_supports("x86-64-v4"))
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
