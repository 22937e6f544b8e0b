// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace troupe::cpu {

/// A row-major float32 matrix as an argument of `gemm`. `stride` is the
/// distance of stored rows; a transposed matrix is read as its transpose.
struct matrix {
  const float* data = nullptr;
  std::int64_t stride = 0;
  bool transposed = false;
};

/// c[m, n] = op(a)[m, k] op(b)[k, n] + beta c, c row-major with rows `stride_c`
/// apart; beta 0 ignores what c holds, k 0 gives zeros (or beta c). c must not
/// overlap a or b. Throws error(kernel_failure) if the library refuses.
/// Thread rule: any thread; runs on the caller alone.
void gemm(std::int64_t m, std::int64_t n, std::int64_t k, const matrix& a,
          const matrix& b, float beta, float* c, std::int64_t stride_c);

} // namespace troupe::cpu
