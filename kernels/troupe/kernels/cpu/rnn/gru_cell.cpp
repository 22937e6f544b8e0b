// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/cpu/rnn/gru_cell.hpp>

#include <troupe/kernels/cpu/product/gemm.hpp>
#include <troupe/kernels/cpu/simd/vector_ops.hpp>

namespace troupe::cpu {

void gru_cell::forward(std::int64_t rows, float* gates, const float* before,
                       float* reset, float* h) const {
  const std::int64_t d = hidden;
  if (before)
    gemm(rows, 2 * d, d, {before, d}, {weights, 2 * d}, 1.0f, gates, 3 * d);
  for (std::int64_t i = 0; i < rows; ++i) {
    gate.apply(gates + i * 3 * d, 2 * d);
    if (before)
      multiply(reset + i * d, gates + i * 3 * d + d, before + i * d, d);
    else
      fill(reset + i * d, d, 0.0f);
  }
  if (before)
    gemm(rows, d, d, {reset, d}, {weights + 2 * d * d, d}, 1.0f, gates + 2 * d,
         3 * d);
  for (std::int64_t i = 0; i < rows; ++i) {
    const float* u = gates + i * 3 * d;
    float* c = gates + i * 3 * d + 2 * d;
    candidate.apply(c, d);
    for (std::int64_t j = 0; j < d; ++j) {
      const float old = before ? before[i * d + j] : 0.0f;
      h[i * d + j] =
        origin_mode ? c[j] + u[j] * (old - c[j]) : old + u[j] * (c[j] - old);
    }
  }
}

void gru_cell::backward(std::int64_t rows, const float* gates,
                        const float* before, const float* reset,
                        const float* dh, float* dgates, float* dbefore,
                        float* dweights, float* scratch) const {
  const std::int64_t d = hidden;
  for (std::int64_t i = 0; i < rows; ++i) {
    const float* u = gates + i * 3 * d;
    const float* c = u + 2 * d;
    float* du = dgates + i * 3 * d;
    float* dc = du + 2 * d;
    for (std::int64_t j = 0; j < d; ++j) {
      const float old = before ? before[i * d + j] : 0.0f;
      const float grad = dh[i * d + j];
      du[j] = origin_mode ? grad * (old - c[j]) : grad * (c[j] - old);
      dc[j] = origin_mode ? grad * (1.0f - u[j]) : grad * u[j];
      if (dbefore)
        dbefore[i * d + j] += origin_mode ? grad * u[j] : grad * (1.0f - u[j]);
    }
    candidate.derive(dc, c, d);
  }
  // scratch = the gradient of r h.
  gemm(rows, d, d, {dgates + 2 * d, 3 * d}, {weights + 2 * d * d, d, true},
       0.0f, scratch, d);
  for (std::int64_t i = 0; i < rows; ++i) {
    const float* r = gates + i * 3 * d + d;
    float* dr = dgates + i * 3 * d + d;
    for (std::int64_t j = 0; j < d; ++j) {
      dr[j] = before ? scratch[i * d + j] * before[i * d + j] : 0.0f;
      if (dbefore)
        dbefore[i * d + j] += scratch[i * d + j] * r[j];
    }
    gate.derive(dgates + i * 3 * d, gates + i * 3 * d, 2 * d);
  }
  if (dbefore)
    gemm(rows, d, 2 * d, {dgates, 3 * d}, {weights, 2 * d, true}, 1.0f, dbefore,
         d);
  if (dweights && before) {
    gemm(d, 2 * d, rows, {before, d, true}, {dgates, 3 * d}, 1.0f, dweights,
         2 * d);
    gemm(d, d, rows, {reset, d, true}, {dgates + 2 * d, 3 * d}, 1.0f,
         dweights + 2 * d * d, d);
  }
}

} // namespace troupe::cpu
