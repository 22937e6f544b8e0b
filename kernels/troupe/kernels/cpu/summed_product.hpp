// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/kernels/cpu/even_cut.hpp>
#include <troupe/kernels/cpu/product.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
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

/// The sum of an op's matrix products, shared by the workers of its device. The
/// same bits as if each product were made alone and added to those before it.
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
    const even_cut rows{m, num_pieces(ctx, m, n, terms)};
    while (products_.size() < rows.parts() * terms.size())
      products_.emplace_back(factors_);
    auto apart = room_apart<T>(ctx, m * n, terms);
    ctx.in_parts(rows.parts(), [&](std::size_t i) {
      const auto first = rows.first(i);
      add_up(ctx, {m, n, first, rows.size(i)}, terms, c + first * n,
             apart ? apart.template data<T>() + first * n : nullptr,
             std::span{products_}.subspan(i * terms.size(), terms.size()));
    });
  }

private:
  // Multiplications of a piece, some 10 us: a helper comes after 0.3 us.
  static constexpr std::int64_t least_work = 1 << 20;
  // Of a piece of the result.
  static constexpr std::int64_t cached_bytes = 256 * 1024;
  // Libraries add a product of at most this depth to what they are given as a
  // whole; of a deeper one they add a part after the other.
  static constexpr std::int64_t whole_depth = 128;

  /// Rows [first, first + rows) of the m of a result with n columns.
  struct piece {
    std::int64_t m, n, first, rows;
  };

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

  template <class T>
  static tensor room_apart(const kernel_context& ctx, std::int64_t elements,
                           std::span<const product_term<T>> terms) {
    const auto deep = std::ranges::any_of(
      terms.subspan(1), [](auto& term) { return term.k > whole_depth; });
    return deep ? tensor::make(ctx.on().memory(), {elements}, dtype_of<T>)
                : tensor{};
  }

  template <class T>
  static void add_up(kernel_context& ctx, const piece& p,
                     std::span<const product_term<T>> terms, T* sum, T* apart,
                     std::span<product> products) {
    for (std::size_t t = 0; t < terms.size(); ++t) {
      const auto& [a, b, k] = terms[t];
      const auto alone = t == 0 || k > whole_depth;
      T* const to = t > 0 && alone ? apart : sum;
      products[t].run(ctx, p.rows, p.n, k, matrix_of<T>{a + p.first, p.m, true},
                      matrix_of<T>{b, p.n}, alone ? T(0) : T(1), to, p.n);
      if (to != sum)
        std::transform(sum, sum + p.rows * p.n, to, sum, std::plus<T>{});
    }
  }

  precision factors_;
  std::vector<product> products_; // of each piece, by term
};

} // namespace troupe::cpu
