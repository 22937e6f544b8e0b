// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/ref/array.hpp>
#include <troupe/kernels/ref/ops.hpp>

#include <algorithm>
#include <vector>

namespace troupe::ref {

namespace {

// mul: Out = X Y, with X seen as [M, K] and Y as [K, N]. The gradients are dX =
// dOut Y^T and dY = X^T dOut.

struct flat_product {
  std::int64_t rows, inner, columns;
  shape out_dims;
};

std::size_t column_dims(const kernel_context& ctx, const char* name,
                        const shape& dims) {
  const auto count = ctx.attributes().get_int(name, 1);
  require(count > 0 && count < static_cast<std::int64_t>(dims.rank()),
          errc::invalid_argument,
          std::string(name) + " = " + std::to_string(count)
            + " does not split the shape " + to_string(dims));
  return static_cast<std::size_t>(count);
}

flat_product flatten(const kernel_context& ctx, const shape& x,
                     const shape& y) {
  const auto xn = column_dims(ctx, "x_num_col_dims", x);
  const auto yn = column_dims(ctx, "y_num_col_dims", y);
  require(x.numel(xn, x.rank()) == y.numel(0, yn), errc::shape_mismatch,
          "mul of " + to_string(x) + " and " + to_string(y));
  std::vector<std::int64_t> out(x.begin(), x.begin() + xn);
  out.insert(out.end(), y.begin() + yn, y.end());
  return {x.numel(0, xn), y.numel(0, yn), y.numel(yn, y.rank()), shape(out)};
}

// matmul_v2: numpy's matmul. Vectors become a row (X) or a column (Y). The
// leading axes are broadcast.

/// One operand as a stack of matrices.
struct operand {
  array values;
  shape batch; ///< leading extents
  shape given; ///< the shape before a vector became a matrix
  std::int64_t rows, columns;
  bool transposed;

  /// The offset of element (i, j) of matrix number `stack` of the broadcast
  /// batch `all`. The matrix may be transposed.
  std::int64_t at(std::int64_t stack, const shape& all, std::int64_t i,
                  std::int64_t j) const {
    if (transposed)
      std::swap(i, j);
    return (matrix(stack, all) * rows + i) * columns + j;
  }
  std::int64_t matrix(std::int64_t stack, const shape& all) const {
    auto where = coordinates(stack, all);
    std::int64_t offset = 0;
    const auto skipped = all.rank() - batch.rank();
    for (std::size_t a = 0; a < batch.rank(); ++a) {
      const auto c = batch[a] == 1 ? 0 : where[a + skipped];
      offset = offset * batch[a] + c;
    }
    return offset;
  }
  std::int64_t out_rows() const { return transposed ? columns : rows; }
  std::int64_t out_columns() const { return transposed ? rows : columns; }
  bool is_vector() const { return given.rank() == 1; }
};

operand make_operand(array values, bool transposed, bool vector_is_row) {
  const auto given = values.dims;
  const auto rank = given.rank();
  require(rank > 0, errc::shape_mismatch, "matmul_v2 of a scalar");
  if (rank == 1)
    return {std::move(values),
            {},
            given,
            vector_is_row ? 1 : given[0],
            vector_is_row ? given[0] : 1,
            false};
  shape batch(given.dims().first(rank - 2));
  return {std::move(values), batch,           given,
          given[rank - 2],   given[rank - 1], transposed};
}

shape broadcast_batch(const shape& a, const shape& b) {
  const auto& longer = a.rank() >= b.rank() ? a : b;
  const auto& shorter = a.rank() >= b.rank() ? b : a;
  auto all = longer;
  const auto skipped = longer.rank() - shorter.rank();
  for (std::size_t i = 0; i < shorter.rank(); ++i) {
    auto& extent = all[i + skipped];
    require(extent == shorter[i] || extent == 1 || shorter[i] == 1,
            errc::shape_mismatch,
            "matmul_v2 of stacks " + to_string(a) + " and " + to_string(b));
    extent = extent == 1 ? shorter[i] : extent;
  }
  return all;
}

struct stacked_product {
  operand x, y;
  shape batch;

  explicit stacked_product(const kernel_context& ctx)
    : x(make_operand(input(ctx, "X"),
                     ctx.attributes().get_bool("trans_x", false), true)),
      y(make_operand(input(ctx, "Y"),
                     ctx.attributes().get_bool("trans_y", false), false)),
      batch(broadcast_batch(x.batch, y.batch)) {
    require(x.out_columns() == y.out_rows(), errc::shape_mismatch,
            "matmul_v2 of " + to_string(x.given) + " and "
              + to_string(y.given));
  }

  shape out_dims() const {
    std::vector<std::int64_t> dims(batch.begin(), batch.end());
    if (!x.is_vector())
      dims.push_back(x.out_rows());
    if (!y.is_vector())
      dims.push_back(y.out_columns());
    return shape(dims);
  }

  /// Calls `f(offset in X, offset in Y, offset in Out)` for each product of two
  /// elements that is summed into the result.
  template <class Function>
  void for_each_term(Function f) const {
    const auto m = x.out_rows(), n = y.out_columns(), k = y.out_rows();
    for (std::int64_t s = 0; s < batch.numel(); ++s)
      for (std::int64_t i = 0; i < m; ++i)
        for (std::int64_t j = 0; j < n; ++j)
          for (std::int64_t l = 0; l < k; ++l)
            f(x.at(s, batch, i, l), y.at(s, batch, l, j), (s * m + i) * n + j);
  }
};

} // namespace

void mul(kernel_context& ctx) {
  auto x = input(ctx, "X"), y = input(ctx, "Y");
  const auto p = flatten(ctx, x.dims, y.dims);
  array out(p.out_dims);
  for (std::int64_t i = 0; i < p.rows; ++i)
    for (std::int64_t j = 0; j < p.columns; ++j)
      for (std::int64_t l = 0; l < p.inner; ++l)
        out[i * p.columns + j] += x[i * p.inner + l] * y[l * p.columns + j];
  output(ctx, "Out", out, input_type(ctx, "X"));
}

void mul_grad(kernel_context& ctx) {
  auto x = input(ctx, "X"), y = input(ctx, "Y"), dout = input(ctx, "Out@GRAD");
  const auto p = flatten(ctx, x.dims, y.dims);
  require_same("Out@GRAD", dout.dims, p.out_dims);
  array dx(x.dims), dy(y.dims);
  for (std::int64_t i = 0; i < p.rows; ++i)
    for (std::int64_t j = 0; j < p.columns; ++j)
      for (std::int64_t l = 0; l < p.inner; ++l) {
        const auto d = dout[i * p.columns + j];
        dx[i * p.inner + l] += d * y[l * p.columns + j];
        dy[l * p.columns + j] += d * x[i * p.inner + l];
      }
  output_if_present(ctx, "X@GRAD", dx, input_type(ctx, "X"));
  output_if_present(ctx, "Y@GRAD", dy, input_type(ctx, "Y"));
}

void matmul_v2(kernel_context& ctx) {
  const stacked_product p(ctx);
  array out(p.out_dims());
  p.for_each_term(
    [&](auto x, auto y, auto o) { out[o] += p.x.values[x] * p.y.values[y]; });
  output(ctx, "Out", out, input_type(ctx, "X"));
}

void matmul_v2_grad(kernel_context& ctx) {
  const stacked_product p(ctx);
  auto dout = input(ctx, "Out@GRAD");
  require_same("Out@GRAD", dout.dims, p.out_dims());
  // Every term contributes to both gradients; repeated matrices are summed by
  // this.
  array dx(p.x.given), dy(p.y.given);
  p.for_each_term([&](auto x, auto y, auto o) {
    dx[x] += dout[o] * p.y.values[y];
    dy[y] += dout[o] * p.x.values[x];
  });
  output_if_present(ctx, "X@GRAD", dx, input_type(ctx, "X"));
  output_if_present(ctx, "Y@GRAD", dy, input_type(ctx, "Y"));
}

} // namespace troupe::ref
