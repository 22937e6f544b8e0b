// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/arguments.hpp>
#include <troupe/kernels/cuda/factories.hpp>
#include <troupe/kernels/cuda/queue_parts.hpp>

#include <vector>

namespace troupe::cuda {

namespace {

/// X seen as `[rows, inner]` and Y as `[inner, columns]`, as op `mul` flattens
/// them.
struct flat_product {
  std::int64_t rows, inner, columns;
  shape out;

  flat_product(const kernel_context& ctx, const shape& x, const shape& y) {
    const auto& a = ctx.attributes();
    const auto cut = [](std::int64_t at, const shape& dims, const char* slot) {
      if (at < 1 || at >= static_cast<std::int64_t>(dims.rank()))
        throw_shape(slot, dims,
                    "cannot be cut after " + std::to_string(at) + " extents");
      return static_cast<std::size_t>(at);
    };
    const auto x_cut = cut(a.get_int("x_num_col_dims", 1), x, "X");
    const auto y_cut = cut(a.get_int("y_num_col_dims", 1), y, "Y");
    rows = x.numel(0, x_cut);
    inner = x.numel(x_cut, x.rank());
    columns = y.numel(y_cut, y.rank());
    if (inner != y.numel(0, y_cut))
      throw_shapes("X", x, "Y", y, "the inner extents differ");
    std::vector<std::int64_t> dims;
    dims.insert(dims.end(), x.begin(),
                x.begin() + static_cast<std::ptrdiff_t>(x_cut));
    dims.insert(dims.end(), y.begin() + static_cast<std::ptrdiff_t>(y_cut),
                y.end());
    out = shape(dims);
  }
};

} // namespace

void run_mul(kernel_context& ctx) {
  const auto x = float_input(ctx, "X"), y = float_input(ctx, "Y");
  const flat_product p(ctx, x.dims(), y.dims());
  auto out = float_output(ctx, "Out", p.out);
  queue_products(stream_of(ctx.queue()), {.m = p.rows,
                                          .n = p.columns,
                                          .k = p.inner,
                                          .a = x.data<float>(),
                                          .b = y.data<float>(),
                                          .c = out.data<float>()});
}

void run_mul_grad(kernel_context& ctx) {
  const auto x = float_input(ctx, "X"), y = float_input(ctx, "Y");
  const auto dout = float_input(ctx, "Out@GRAD");
  const flat_product p(ctx, x.dims(), y.dims());
  require_shape("Out@GRAD", dout.dims(), p.out);
  if (ctx.has_output("X@GRAD")) {
    auto dx = float_output(ctx, "X@GRAD", x.dims());
    queue_products(stream_of(ctx.queue()), {.m = p.rows,
                                            .n = p.inner,
                                            .k = p.columns,
                                            .a = dout.data<float>(),
                                            .b = y.data<float>(),
                                            .c = dx.data<float>(),
                                            .b_transposed = true});
  }
  if (ctx.has_output("Y@GRAD")) {
    auto dy = float_output(ctx, "Y@GRAD", y.dims());
    queue_products(stream_of(ctx.queue()), {.m = p.inner,
                                            .n = p.columns,
                                            .k = p.rows,
                                            .a = x.data<float>(),
                                            .b = dout.data<float>(),
                                            .c = dy.data<float>(),
                                            .a_transposed = true});
  }
}

} // namespace troupe::cuda
