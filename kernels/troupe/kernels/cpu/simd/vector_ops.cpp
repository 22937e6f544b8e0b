// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/cpu/simd/vector_ops.hpp>

#include <troupe/kernels/cpu/simd/simd.hpp>

#include <algorithm>
#include <cstring>

namespace troupe::cpu {

namespace {

TROUPE_SIMD float block_sum(const float* x, std::int64_t n) {
  float total = 0.0f;
#pragma omp simd reduction(+ : total)
  for (std::int64_t i = 0; i < n; ++i)
    total += x[i];
  return total;
}

TROUPE_SIMD float block_sum_squares(const float* x, std::int64_t n) {
  float total = 0.0f;
#pragma omp simd reduction(+ : total)
  for (std::int64_t i = 0; i < n; ++i)
    total += x[i] * x[i];
  return total;
}

constexpr std::int64_t sum_block = 4096;

// Adds `rows` rows of a strip of columns. The strip stays in registers or in
// the first-level cache.
constexpr std::int64_t strip_columns = 64;
constexpr std::int64_t block_rows = 128;

TROUPE_SIMD void strip_sum(float* out, const float* x, std::int64_t rows,
                           std::int64_t stride, std::int64_t cols) {
  float total[strip_columns] = {};
  for (std::int64_t r = 0; r < rows; ++r) {
    const float* row = x + r * stride;
#pragma omp simd
    for (std::int64_t c = 0; c < cols; ++c)
      total[c] += row[c];
  }
#pragma omp simd
  for (std::int64_t c = 0; c < cols; ++c)
    out[c] += total[c];
}

} // namespace

void fill(float* out, std::int64_t n, float value) {
  std::fill_n(out, n, value);
}

void copy(float* out, const float* x, std::int64_t n) {
  if (out != x && n > 0)
    std::memcpy(out, x, static_cast<std::size_t>(n) * sizeof(float));
}

TROUPE_SIMD void add(float* out, const float* a, const float* b,
                     std::int64_t n) {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i)
    out[i] = a[i] + b[i];
}

TROUPE_SIMD void subtract(float* out, const float* a, const float* b,
                          std::int64_t n) {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i)
    out[i] = a[i] - b[i];
}

TROUPE_SIMD void multiply(float* out, const float* a, const float* b,
                          std::int64_t n) {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i)
    out[i] = a[i] * b[i];
}

TROUPE_SIMD void scale_add(float* out, const float* x, float scale, float bias,
                           std::int64_t n) {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i)
    out[i] = x[i] * scale + bias;
}

TROUPE_SIMD void accumulate(float* out, const float* x, float scale,
                            std::int64_t n) {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i)
    out[i] += x[i] * scale;
}

double sum(const float* x, std::int64_t n) {
  double total = 0.0;
  for (std::int64_t i = 0; i < n; i += sum_block)
    total += static_cast<double>(block_sum(x + i, std::min(sum_block, n - i)));
  return total;
}

double sum_squares(const float* x, std::int64_t n) {
  double total = 0.0;
  for (std::int64_t i = 0; i < n; i += sum_block)
    total +=
      static_cast<double>(block_sum_squares(x + i, std::min(sum_block, n - i)));
  return total;
}

void sum_rows(float* out, const float* x, std::int64_t rows,
              std::int64_t cols) {
  fill(out, cols, 0.0f);
  for (std::int64_t c = 0; c < cols; c += strip_columns) {
    const std::int64_t width = std::min(strip_columns, cols - c);
    for (std::int64_t r = 0; r < rows; r += block_rows)
      strip_sum(out + c, x + r * cols + c, std::min(block_rows, rows - r), cols,
                width);
  }
}

} // namespace troupe::cpu
