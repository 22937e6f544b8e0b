// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/kernels/cpu/product/product.hpp>
#include <troupe/kernels/cpu/reduce/even_cut.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace troupe::cpu {

/// One of several products that are added up: the transpose of a[k, m] times
/// b[k, n].
template <class T>
struct product_term {
  const T* a = nullptr;
  const T* b = nullptr;
  std::int64_t k = 0;
};

/// The matrix products of an op, shared by the workers of its device. How they
/// are cut depends only on the extents and the number of workers, not on who is
/// idle, so results have the same bits each time. Thread rule: one thread at a
/// time, any thread.
class parallel_product {
public:
  explicit parallel_product(precision factors) : factors_(factors) {}

  /// As `gemm`. Each part computes some columns of the result, or some rows if
  /// there are more rows than columns. There are two parts for each worker: if
  /// a worker joins late, because it was inside an op of another step, the
  /// others wait half as long.
  template <class T>
  void run(const kernel_context& ctx, std::int64_t m, std::int64_t n,
           std::int64_t k, const matrix_of<T>& a, const matrix_of<T>& b, T beta,
           T* c, std::int64_t stride_c) {
    const auto workers = ctx.workers();
    const auto most =
      worthwhile_parts(workers > 1 ? 2 * workers : 1, m * n * k, least_work);
    const even_cut cut{std::max(m, n), most, whole_registers};
    make(cut.parts());
    ctx.in_parts(cut.parts(), [&](std::size_t i) {
      const auto first = cut.first(i);
      const auto size = cut.size(i);
      if (n >= m)
        parts_[i].run(ctx, m, size, k, a, columns_from(b, first), beta,
                      c + first, stride_c);
      else
        parts_[i].run(ctx, size, n, k, rows_from(a, first), b, beta,
                      c + first * stride_c, stride_c);
    });
  }

  /// c[m, n] = the sum of `count` products, at least one, in their order;
  /// `term(t)` is product_term<T> number t. The rows of c are cut into pieces
  /// that stay in a core's cache from one term to the next. There are more
  /// pieces than workers: if a worker joins late, the others wait less.
  template <class T, class Term>
  void run_sum(const kernel_context& ctx, std::int64_t m, std::int64_t n,
               std::size_t count, Term term, T* c) {
    run_sum_in_pieces<T>(
      ctx, m, n, count, term,
      [=](std::int64_t first, std::int64_t) { return c + first * n; },
      [](std::int64_t, std::int64_t, const T*) {});
  }

  /// The same, but rows [first, first + rows) of c are computed at
  /// `place(first, rows)`, which must stay valid until `use(first, rows,
  /// piece)` returns. `use` is called once for each piece, by the worker that
  /// computed it.
  template <class T, class Term, class Place, class Use>
  void run_sum_in_pieces(const kernel_context& ctx, std::int64_t m,
                         std::int64_t n, std::size_t count, Term term,
                         Place place, Use use) {
    std::int64_t depth = 0;
    for (std::size_t t = 0; t < count; ++t)
      depth += term(t).k;
    const auto shares =
      worthwhile_parts(ctx.workers(), m * n * depth, least_work);
    const auto bytes = m * n * static_cast<std::int64_t>(sizeof(T));
    const auto of_share = ceil_div(bytes, static_cast<std::int64_t>(shares));
    const auto pieces = static_cast<std::size_t>(
      std::max<std::int64_t>(1, ceil_div(of_share, cached_bytes)));
    const even_cut cut{m, shares * pieces, whole_registers};
    make(cut.parts() * count);
    ctx.in_parts(cut.parts(), [&](std::size_t i) {
      const auto first = cut.first(i), rows = cut.size(i);
      T* const piece = place(first, rows);
      for (std::size_t t = 0; t < count; ++t) {
        const product_term<T> next = term(t);
        parts_[i * count + t].run(
          ctx, rows, n, next.k, matrix_of<T>{next.a + first, m, true},
          matrix_of<T>{next.b, n}, t == 0 ? T(0) : T(1), piece, n);
      }
      use(first, rows, piece);
    });
  }

  /// Calls `one(product, i)` for each i in [0, count). Each product has `work`
  /// multiplications; their results do not overlap.
  template <class One>
  void run_each(const kernel_context& ctx, std::int64_t count,
                std::int64_t work, One one) {
    const auto most = worthwhile_parts(ctx.workers(), count * work, least_work);
    const even_cut cut{count, most};
    make(cut.parts());
    ctx.in_parts(cut.parts(), [&](std::size_t part) {
      for (std::int64_t i = 0; i < cut.size(part); ++i)
        one(parts_[part], cut.first(part) + i);
    });
  }

private:
  // The least number of multiplications per part, some 10 us. A helper takes
  // 0.3 us to join.
  static constexpr std::int64_t least_work = 1 << 20;
  static constexpr std::int64_t whole_registers = 16; // floats
  // Bytes of a piece of a sum.
  static constexpr std::int64_t cached_bytes = 256 * 1024;

  template <class T>
  static matrix_of<T> rows_from(matrix_of<T> a, std::int64_t first) {
    a.data += a.transposed ? first : first * a.stride;
    return a;
  }
  template <class T>
  static matrix_of<T> columns_from(matrix_of<T> b, std::int64_t first) {
    b.data += b.transposed ? first * b.stride : first;
    return b;
  }

  void make(std::size_t parts) {
    while (parts_.size() < parts)
      parts_.emplace_back(factors_);
  }

  precision factors_;
  std::vector<product> parts_;
};

} // namespace troupe::cpu
