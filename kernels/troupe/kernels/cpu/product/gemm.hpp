// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace troupe::cpu {

/// A row-major matrix as an argument of `gemm`. `stride` is the distance
/// between stored rows. If transposed, its transpose is what `gemm` reads.
template <class T>
struct matrix_of {
  const T* data = nullptr;
  std::int64_t stride = 0;
  bool transposed = false;
};
using matrix = matrix_of<float>;

/// c[m, n] = op(a)[m, k] op(b)[k, n] + beta c. c is row-major with rows
/// `stride_c` apart and must not overlap a or b. If beta is 0, the old values
/// of c are ignored; if k is 0, the result is beta c, or zeros. Throws
/// error(kernel_failure) if the library refuses. Thread rule: any thread; uses
/// no other threads.
void gemm(std::int64_t m, std::int64_t n, std::int64_t k, const matrix& a,
          const matrix& b, float beta, float* c, std::int64_t stride_c);
/// The same in double precision.
void gemm(std::int64_t m, std::int64_t n, std::int64_t k,
          const matrix_of<double>& a, const matrix_of<double>& b, double beta,
          double* c, std::int64_t stride_c);
/// The same for integers, which wrap around, in plain loops.
void gemm(std::int64_t m, std::int64_t n, std::int64_t k,
          const matrix_of<std::int32_t>& a, const matrix_of<std::int32_t>& b,
          std::int32_t beta, std::int32_t* c, std::int64_t stride_c);
void gemm(std::int64_t m, std::int64_t n, std::int64_t k,
          const matrix_of<std::int64_t>& a, const matrix_of<std::int64_t>& b,
          std::int64_t beta, std::int64_t* c, std::int64_t stride_c);

} // namespace troupe::cpu
