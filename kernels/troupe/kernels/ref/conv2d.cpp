// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/ref/array.hpp>
#include <troupe/kernels/ref/ops.hpp>
#include <troupe/kernels/ref/window.hpp>

namespace troupe::ref {

namespace {

/// Input [N, C, H, W], Filter [O, C / groups, KH, KW]. An output channel
/// depends only on the input channels of its group.
struct convolution {
  shape in, filter, out;
  std::int64_t groups;
  std::array<sliding, 2> axes;

  convolution(const kernel_context& ctx, const shape& input_dims,
              const shape& filter_dims)
    : in(input_dims), filter(filter_dims),
      groups(ctx.attributes().get_int("groups", 1)) {
    require(in.rank() == 4 && filter.rank() == 4, errc::shape_mismatch,
            "conv2d takes tensors of rank 4, not " + to_string(in) + " and "
              + to_string(filter));
    require(
      groups > 0 && in[1] == filter[1] * groups && filter[0] % groups == 0,
      errc::shape_mismatch,
      "Input " + to_string(in) + ", Filter " + to_string(filter)
        + " and groups " + std::to_string(groups) + " do not go together");
    const auto layout = ctx.attributes().get_string("data_format", "NCHW");
    require(layout == "NCHW" || layout == "AnyLayout", errc::invalid_argument,
            "data_format " + layout + " is not supported");
    axes =
      read_sliding(ctx.attributes(), {in[2], in[3]}, {filter[2], filter[3]});
    out = shape{in[0], filter[0], axes[0].positions(in[2]),
                axes[1].positions(in[3])};
  }

  /// Calls `f(offset in Input, offset in Filter, offset in Output)` for each
  /// product of the convolution.
  template <class Function>
  void for_each_term(Function f) const {
    const auto count = out.numel();
    for (std::int64_t o = 0; o < count; ++o)
      for_each_term_of(coordinates(o, out), o, f);
  }

private:
  template <class Function>
  void for_each_term_of(const shape& at, std::int64_t o, Function f) const {
    const auto group = at[1] / (filter[0] / groups);
    for (std::int64_t c = 0; c < filter[1]; ++c)
      for (std::int64_t i = 0; i < filter[2]; ++i)
        for (std::int64_t j = 0; j < filter[3]; ++j) {
          const auto h = source(axes[0], at[2], i);
          const auto w = source(axes[1], at[3], j);
          if (h < 0 || h >= in[2] || w < 0 || w >= in[3])
            continue;
          f(offset_of({at[0], group * filter[1] + c, h, w}, in),
            offset_of({at[1], c, i, j}, filter), o);
        }
  }

  static std::int64_t source(const sliding& axis, std::int64_t position,
                             std::int64_t element) {
    return position * axis.stride - axis.before + element * axis.dilation;
  }
};

} // namespace

void conv2d(kernel_context& ctx) {
  auto x = input(ctx, "Input"), w = input(ctx, "Filter");
  const convolution conv(ctx, x.dims, w.dims);
  array out(conv.out);
  conv.for_each_term([&](auto i, auto f, auto o) { out[o] += x[i] * w[f]; });
  output(ctx, "Output", out, input_type(ctx, "Input"));
}

void conv2d_grad(kernel_context& ctx) {
  auto x = input(ctx, "Input"), w = input(ctx, "Filter"),
       d = input(ctx, "Output@GRAD");
  const convolution conv(ctx, x.dims, w.dims);
  require_same("Output@GRAD", d.dims, conv.out);
  array dx(x.dims), dw(w.dims);
  conv.for_each_term([&](auto i, auto f, auto o) {
    dx[i] += d[o] * w[f];
    dw[f] += d[o] * x[i];
  });
  output_if_present(ctx, "Input@GRAD", dx, input_type(ctx, "Input"));
  output_if_present(ctx, "Filter@GRAD", dw, input_type(ctx, "Filter"));
}

} // namespace troupe::ref
