// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/kernels/cpu/simd/simd.hpp>

#include <cstdint>

namespace troupe::cpu {

/// Whether the machine has AVX2 and the rows are long enough for these
/// functions.
inline bool takes_2x2(std::int64_t cols) noexcept {
  return machine_vectors() != vector_level::build && cols >= 4;
}

/// The maxima of adjacent 2x2 windows over a plane [2 rows, 2 cols]. Each
/// element is read once. NaN and equal maxima are treated as in pool2d.cpp.
void max_2x2(float* out, const float* x, std::int64_t rows, std::int64_t cols);

/// The gradient of max_2x2; writes every element of dx.
void max_2x2_gradient(float* dx, const float* x, const float* dout,
                      std::int64_t rows, std::int64_t cols);

} // namespace troupe::cpu
