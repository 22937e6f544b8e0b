// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/kernels/cuda/driver.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace troupe::test {

/// B as [k, n], not transposed.
inline std::vector<double> plain_factor(const cuda::matrix_product& p) {
  std::vector<double> b(static_cast<std::size_t>(p.k * p.n));
  for (std::int64_t l = 0; l < p.k; ++l)
    for (std::int64_t j = 0; j < p.n; ++j)
      b[static_cast<std::size_t>(l * p.n + j)] =
        p.b[p.b_transposed ? j * p.k + l : l * p.n + j];
  return b;
}

/// In double precision; rows of C at a time, because that is fast.
inline void multiply_once(const cuda::matrix_product& p) {
  const auto factor = plain_factor(p);
  std::vector<double> row(static_cast<std::size_t>(p.n));
  for (std::int64_t i = 0; i < p.m; ++i) {
    std::ranges::fill(row, 0.0);
    const auto* b = factor.data();
    for (std::int64_t l = 0; l < p.k; ++l) {
      const double a = p.a[p.a_transposed ? l * p.m + i : i * p.k + l];
      for (double& sum : row)
        sum += a * *b++;
    }
    for (std::int64_t j = 0; j < p.n; ++j) {
      auto& c = p.c[i * p.n + j];
      c = static_cast<float>((p.adds ? double{c} : 0)
                             + row[static_cast<std::size_t>(j)]);
    }
  }
}

/// All products of a call, in the order of their numbers.
inline void multiply_plainly(cuda::matrix_product p) {
  for (std::int64_t i = 0; i < p.count; ++i) {
    multiply_once(p);
    p.a += p.a_step;
    p.b += p.b_step;
    p.c += p.c_step;
  }
}

} // namespace troupe::test
