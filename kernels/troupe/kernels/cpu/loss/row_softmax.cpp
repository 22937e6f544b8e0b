// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/cpu/loss/row_softmax.hpp>

#include <troupe/kernels/cpu/simd/simd.hpp>
#include <troupe/kernels/cpu/simd/vector_math.hpp>

#include <algorithm>
#include <cmath>
#include <limits>

namespace troupe::cpu {

namespace {

TROUPE_SIMD float row_max(const float* x, std::int64_t n) {
  float most = -std::numeric_limits<float>::infinity();
#pragma omp simd reduction(max : most)
  for (std::int64_t i = 0; i < n; ++i)
    most = most < x[i] ? x[i] : most;
  return most;
}

TROUPE_SIMD float shifted_exp(float* out, const float* x, float shift,
                              std::int64_t n) {
  float total = 0.0f;
#pragma omp simd reduction(+ : total)
  for (std::int64_t i = 0; i < n; ++i) {
    const float e = fast_exp(x[i] - shift);
    out[i] = e;
    total += e;
  }
  return total;
}

TROUPE_SIMD void scale_row(float* out, float factor, std::int64_t n) {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i)
    out[i] *= factor;
}

} // namespace

softmax_total<float> row_softmax(float* out, const float* x, std::int64_t n) {
  const float most = row_max(x, n);
  const float total = shifted_exp(out, x, most, n);
  scale_row(out, 1.0f / total, n);
  return {most, std::log(total)};
}

softmax_total<double> row_softmax(double* out, const double* x,
                                  std::int64_t n) {
  const double largest = *std::max_element(x, x + n);
  double total = 0.0;
  for (std::int64_t i = 0; i < n; ++i)
    total += out[i] = std::exp(x[i] - largest);
  for (std::int64_t i = 0; i < n; ++i)
    out[i] /= total;
  return {largest, std::log(total)};
}

double row_dot(const double* a, const double* b, std::int64_t n) {
  double total = 0.0;
  for (std::int64_t i = 0; i < n; ++i)
    total += a[i] * b[i];
  return total;
}

TROUPE_SIMD float row_dot(const float* a, const float* b, std::int64_t n) {
  float total = 0.0f;
#pragma omp simd reduction(+ : total)
  for (std::int64_t i = 0; i < n; ++i)
    total += a[i] * b[i];
  return total;
}

} // namespace troupe::cpu
