// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/ref/array.hpp>
#include <troupe/kernels/ref/ops.hpp>

#include <cstdlib>

namespace troupe::ref {

namespace {

// Paddle's broadcast: the extents of the operand of lower rank are aligned with
// those of the other from `axis` on (-1: at the end). The operand is repeated
// along axes that it lacks, and extents of 1 are repeated, too.

/// `dims` with ones added before and after, up to `rank` extents.
shape extend(const shape& dims, std::size_t rank, std::size_t axis) {
  std::vector<std::int64_t> extended(rank, 1);
  require(axis + dims.rank() <= rank, errc::shape_mismatch,
          "shape " + to_string(dims) + " does not fit at axis "
            + std::to_string(axis) + " of rank " + std::to_string(rank));
  for (std::size_t i = 0; i < dims.rank(); ++i)
    extended[axis + i] = dims[i];
  return shape(extended);
}

struct broadcast {
  shape x, y, out; ///< all have the same rank

  broadcast(const kernel_context& ctx, const shape& x_dims,
            const shape& y_dims) {
    const auto rank = std::max(x_dims.rank(), y_dims.rank());
    auto axis = ctx.attributes().get_int("axis", -1);
    if (axis < 0)
      axis = std::labs(static_cast<long>(x_dims.rank())
                       - static_cast<long>(y_dims.rank()));
    const auto at = static_cast<std::size_t>(axis);
    x = extend(x_dims, rank, x_dims.rank() == rank ? 0 : at);
    y = extend(y_dims, rank, y_dims.rank() == rank ? 0 : at);
    out = x;
    for (std::size_t i = 0; i < rank; ++i) {
      require(x[i] == y[i] || x[i] == 1 || y[i] == 1, errc::shape_mismatch,
              "X has shape " + to_string(x_dims) + ", Y " + to_string(y_dims));
      out[i] = x[i] == 1 ? y[i] : x[i];
    }
  }

  /// Calls `f(offset in X, offset in Y, offset in Out)` for each output.
  template <class Function>
  void for_each(Function f) const {
    const auto count = out.numel();
    for (std::int64_t o = 0; o < count; ++o) {
      const auto where = coordinates(o, out);
      f(source_offset(where, x), source_offset(where, y), o);
    }
  }

  static std::int64_t source_offset(shape where, const shape& dims) {
    for (std::size_t i = 0; i < dims.rank(); ++i)
      if (dims[i] == 1)
        where[i] = 0;
    return offset_of(where, dims);
  }
};

using binary = double (*)(double x, double y);

void forward(kernel_context& ctx, binary f) {
  auto x = input(ctx, "X"), y = input(ctx, "Y");
  const broadcast b(ctx, x.dims, y.dims);
  array out(b.out);
  b.for_each([&](auto i, auto j, auto o) { out[o] = f(x[i], y[j]); });
  output(ctx, "Out", out, input_type(ctx, "X"));
}

/// @param df_dx, df_dy the partial derivatives
void backward(kernel_context& ctx, binary df_dx, binary df_dy) {
  auto x = input(ctx, "X"), y = input(ctx, "Y"), dout = input(ctx, "Out@GRAD");
  const broadcast b(ctx, x.dims, y.dims);
  require_same("Out@GRAD", dout.dims, b.out);
  array dx(x.dims), dy(y.dims);
  b.for_each([&](auto i, auto j, auto o) {
    dx[i] += dout[o] * df_dx(x[i], y[j]);
    dy[j] += dout[o] * df_dy(x[i], y[j]);
  });
  output_if_present(ctx, "X@GRAD", dx, input_type(ctx, "X"));
  output_if_present(ctx, "Y@GRAD", dy, input_type(ctx, "Y"));
}

double one(double, double) {
  return 1;
}
double minus_one(double, double) {
  return -1;
}
double first(double x, double) {
  return x;
}
double second(double, double y) {
  return y;
}

} // namespace

void elementwise_add(kernel_context& ctx) {
  forward(ctx, [](double x, double y) { return x + y; });
}
void elementwise_add_grad(kernel_context& ctx) {
  backward(ctx, one, one);
}

void elementwise_sub(kernel_context& ctx) {
  forward(ctx, [](double x, double y) { return x - y; });
}
void elementwise_sub_grad(kernel_context& ctx) {
  backward(ctx, one, minus_one);
}

void elementwise_mul(kernel_context& ctx) {
  forward(ctx, [](double x, double y) { return x * y; });
}
void elementwise_mul_grad(kernel_context& ctx) {
  backward(ctx, second, first);
}

} // namespace troupe::ref
