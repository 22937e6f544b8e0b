// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/cpu/arguments.hpp>
#include <troupe/kernels/cpu/element_types.hpp>
#include <troupe/kernels/cpu/factories.hpp>

#include <algorithm>
#include <cmath>
#include <cstring>

namespace troupe::cpu {

namespace {

// The least value of a squared norm.
constexpr double smallest_square = 1e-8;

// The rows of X, and one row of Y for each or one for all.
struct row_pairs {
  tensor x;
  tensor y;
  std::int64_t rows = 0;
  std::int64_t width = 0;
  bool shared = false; // one row of Y

  std::int64_t row_of_y(std::int64_t row) const { return shared ? 0 : row; }
};

row_pairs pairs_of(const kernel_context& ctx) {
  row_pairs p{ctx.input("X"), ctx.input("Y")};
  const shape& x = p.x.dims();
  const shape& y = p.y.dims();
  require_type("Y", p.y.type(), p.x.type());
  if (x.rank() < 2)
    throw_shape("X", x, "expected rank 2 at least");
  const bool same_rows =
    x.rank() == y.rank() && std::equal(x.begin() + 1, x.end(), y.begin() + 1);
  if (!same_rows || (y[0] != x[0] && y[0] != 1))
    throw_shapes("Y", y, "X", x, "expected Y of X's shape, or one row of it");
  p.rows = x[0];
  p.width = x.numel(1, x.rank());
  p.shared = y[0] != x[0];
  return p;
}

template <class T>
T sum_of_products(const T* a, const T* b, std::int64_t n) {
  T total{};
  for (std::int64_t i = 0; i < n; ++i)
    total += a[i] * b[i];
  return total;
}

template <class T>
void write_norms(kernel_context& ctx, std::string_view slot, const tensor& of,
                 std::int64_t width) {
  const std::int64_t rows = of.dims()[0];
  tensor norms = ctx.output(slot, {rows, 1}, of.type());
  for (std::int64_t i = 0; i < rows; ++i) {
    const T* row = values_in<T>(of) + i * width;
    norms.data<T>()[i] = std::sqrt(std::max(sum_of_products(row, row, width),
                                            static_cast<T>(smallest_square)));
  }
}

// What the gradients read: X, Y, and otherwise one number per row.
struct row_gradients {
  tensor x_norm;
  tensor y_norm;
  tensor out;
  tensor dout;
};

tensor numbers(const kernel_context& ctx, std::string_view slot,
               std::int64_t rows, dtype type) {
  tensor value = ctx.input(slot);
  require_type(slot, value.type(), type);
  if (value.numel() != rows)
    require_shape(slot, value.dims(), {rows, 1});
  return value;
}

row_gradients gradients_of(const kernel_context& ctx, const row_pairs& p) {
  const dtype type = p.x.type();
  return {numbers(ctx, "XNorm", p.rows, type),
          numbers(ctx, "YNorm", p.y.dims()[0], type),
          numbers(ctx, "Out", p.rows, type),
          numbers(ctx, "Out@GRAD", p.rows, type)};
}

// to += dout (other / (norm other_norm) - out own / norm^2)
template <class T>
void add_gradient(T* to, const T* own, const T* other, T norm, T other_norm,
                  T out, T dout, std::int64_t n) {
  const T along_other = dout / (norm * other_norm);
  const T along_own = dout * out / (norm * norm);
  for (std::int64_t i = 0; i < n; ++i)
    to[i] += along_other * other[i] - along_own * own[i];
}

tensor zeros(kernel_context& ctx, std::string_view slot, const tensor& like) {
  tensor value = ctx.output(slot, like.dims(), like.type());
  std::memset(value.raw(), 0, value.bytes());
  return value;
}

template <class T>
void write_gradients(kernel_context& ctx, const row_pairs& p,
                     const row_gradients& g) {
  const bool for_x = ctx.has_output("X@GRAD");
  const bool for_y = ctx.has_output("Y@GRAD");
  tensor dx = for_x ? zeros(ctx, "X@GRAD", p.x) : tensor{};
  tensor dy = for_y ? zeros(ctx, "Y@GRAD", p.y) : tensor{};
  for (std::int64_t row = 0; row < p.rows; ++row) {
    const std::int64_t other = p.row_of_y(row);
    const T* x = values_in<T>(p.x) + row * p.width;
    const T* y = values_in<T>(p.y) + other * p.width;
    const T x_norm = values_in<T>(g.x_norm)[row];
    const T y_norm = values_in<T>(g.y_norm)[other];
    const T out = values_in<T>(g.out)[row];
    const T dout = values_in<T>(g.dout)[row];
    if (for_x)
      add_gradient(dx.data<T>() + row * p.width, x, y, x_norm, y_norm, out,
                   dout, p.width);
    if (for_y)
      add_gradient(dy.data<T>() + other * p.width, y, x, y_norm, x_norm, out,
                   dout, p.width);
  }
}

} // namespace

// Out = X Y / (XNorm YNorm), row by row.
void run_cos_sim(kernel_context& ctx) {
  const row_pairs p = pairs_of(ctx);
  with_floating(p.x.type(), "X", [&]<class T>(T) {
    write_norms<T>(ctx, "XNorm", p.x, p.width);
    write_norms<T>(ctx, "YNorm", p.y, p.width);
    const T* x_norm = values_in<T>(ctx.output_variable("XNorm").as_tensor());
    const T* y_norm = values_in<T>(ctx.output_variable("YNorm").as_tensor());
    tensor out = ctx.output("Out", {p.rows, 1}, p.x.type());
    for (std::int64_t row = 0; row < p.rows; ++row) {
      const std::int64_t other = p.row_of_y(row);
      out.data<T>()[row] =
        sum_of_products(values_in<T>(p.x) + row * p.width,
                        values_in<T>(p.y) + other * p.width, p.width)
        / (x_norm[row] * y_norm[other]);
    }
    out.set_levels(p.x.levels());
  });
}

void run_cos_sim_grad(kernel_context& ctx) {
  const row_pairs p = pairs_of(ctx);
  const row_gradients g = gradients_of(ctx, p);
  with_floating(p.x.type(), "X",
                [&]<class T>(T) { write_gradients<T>(ctx, p, g); });
}

} // namespace troupe::cpu
