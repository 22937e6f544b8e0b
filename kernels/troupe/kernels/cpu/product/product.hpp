// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/kernels/cpu/layout/blocked_primitive.hpp>
#include <troupe/kernels/cpu/product/gemm.hpp>
#include <troupe/kernels/precision.hpp>

#include <cstdint>

namespace troupe::cpu {

/// One matrix product of an op. It keeps the oneDNN primitive as long as the
/// extents stay. In bfloat16, the factors are rounded to nearest (8 bits), and
/// products are summed in float32. Small products and products of other dtypes
/// use `gemm`. Thread rule: one thread at a time, any thread; uses no other
/// threads.
class product {
public:
  explicit product(precision factors) : factors_(factors) {}

  /// As `gemm`. Throws error(kernel_failure).
  void run(const kernel_context& ctx, std::int64_t m, std::int64_t n,
           std::int64_t k, const matrix& a, const matrix& b, float beta,
           float* c, std::int64_t stride_c);
  template <class T>
  void run(const kernel_context&, std::int64_t m, std::int64_t n,
           std::int64_t k, const matrix_of<T>& a, const matrix_of<T>& b, T beta,
           T* c, std::int64_t stride_c) {
    gemm(m, n, k, a, b, beta, c, stride_c);
  }

private:
  /// What the primitive was made for.
  struct problem {
    std::int64_t m = 0, n = 0, k = 0;
    std::int64_t stride_a = 0, stride_b = 0, stride_c = 0;
    bool transposed_a = false, transposed_b = false;
    float beta = 0;
    bool operator==(const problem&) const = default;
  };

  static blocked_primitive prepare(const problem& p);

  precision factors_;
  problem prepared_;
  blocked_primitive primitive_;
};

} // namespace troupe::cpu
