// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/kernels/cpu/even_cut.hpp>
#include <troupe/kernels/cpu/product.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace troupe::cpu {

/// One of the products that are added up: a[k, m] as its transpose, b[k, n].
template <class T>
struct product_term {
  const T* a = nullptr;
  const T* b = nullptr;
  std::int64_t k = 0;
};

/// The sum of an op's matrix products, shared by the workers of its device. How
/// it is cut depends on the extents and on how many workers there are:
/// results are the same bits each time.
/// Thread rule: one thread at a time, any thread.
class summed_product {
public:
  explicit summed_product(precision factors) : factors_(factors) {}

  /// c[m, n] = the sum of a^T b over `terms`, of which there is at least one,
  /// in their order. Workers share rows of c in pieces that stay in a core's
  /// cache from one term to the next.
  template <class T>
  void run(kernel_context& ctx, std::int64_t m, std::int64_t n,
           std::span<const product_term<T>> terms, T* c) {
    const even_cut rows{m, num_pieces(ctx, m, n, terms), whole_registers};
    while (products_.size() < rows.parts() * terms.size())
      products_.emplace_back(factors_);
    ctx.in_parts(rows.parts(), [&](std::size_t piece) {
      const auto first = rows.first(piece);
      for (std::size_t t = 0; t < terms.size(); ++t) {
        const auto& [a, b, k] = terms[t];
        products_[piece * terms.size() + t].run(
          ctx, rows.size(piece), n, k, matrix_of<T>{a + first, m, true},
          matrix_of<T>{b, n}, t == 0 ? T(0) : T(1), c + first * n, n);
      }
    });
  }

private:
  // Multiplications of a piece, some 10 us: a helper comes after 0.3 us.
  static constexpr std::int64_t least_work = 1 << 20;
  // Of a piece of the result.
  static constexpr std::int64_t cached_bytes = 256 * 1024;
  static constexpr std::int64_t whole_registers = 16; // rows

  template <class T>
  static std::size_t num_pieces(const kernel_context& ctx, std::int64_t m,
                                std::int64_t n,
                                std::span<const product_term<T>> terms) {
    std::int64_t work = 0;
    for (auto& term : terms)
      work += m * n * term.k;
    const auto shares = worthwhile_parts(ctx.workers(), work, least_work);
    const auto bytes = m * n * static_cast<std::int64_t>(sizeof(T));
    const auto of_share = ceil_div(bytes, static_cast<std::int64_t>(shares));
    return shares * static_cast<std::size_t>(ceil_div(of_share, cached_bytes));
  }

  precision factors_;
  std::vector<product> products_; // of each piece, by term
};

} // namespace troupe::cpu
