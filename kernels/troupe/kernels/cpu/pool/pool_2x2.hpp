// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/kernels/cpu/simd/simd.hpp>

#include <cstdint>

namespace troupe::cpu {

/// Whether the machine has AVX2 and rows are long enough for what follows.
inline bool takes_2x2(std::int64_t cols) noexcept {
  return machine_vectors() != vector_level::build && cols >= 4;
}

/// Maxima of windows of 2x2 side by side over a plane [2 rows, 2 cols], each
/// element read once. NaN and equal maxima are treated as by pool2d.cpp.
void max_2x2(float* out, const float* x, std::int64_t rows, std::int64_t cols);

/// Its gradient; writes each element of dx.
void max_2x2_gradient(float* dx, const float* x, const float* dout,
                      std::int64_t rows, std::int64_t cols);

} // namespace troupe::cpu
