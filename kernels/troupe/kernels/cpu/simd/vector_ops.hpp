// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace troupe::cpu {

// Loops over float32 arrays, compiled for the machine's vectors. An output may
// be the same array as an input. Sums are computed in a fixed order, so equal
// data give equal bits.

void fill(float* out, std::int64_t n, float value);
/// Copies; `out` and `x` may be equal.
void copy(float* out, const float* x, std::int64_t n);

void add(float* out, const float* a, const float* b, std::int64_t n);
void subtract(float* out, const float* a, const float* b, std::int64_t n);
void multiply(float* out, const float* a, const float* b, std::int64_t n);
/// out = x * scale + bias
void scale_add(float* out, const float* x, float scale, float bias,
               std::int64_t n);
/// out += x * scale
void accumulate(float* out, const float* x, float scale, std::int64_t n);

/// The sum of x: blocks of 4096 in float, added up in double.
double sum(const float* x, std::int64_t n);
/// The sum of the squares of x, in the same way.
double sum_squares(const float* x, std::int64_t n);
/// out[c] = sum over r of x[r, c], first within blocks of rows.
void sum_rows(float* out, const float* x, std::int64_t rows, std::int64_t cols);

} // namespace troupe::cpu
