// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/ref/array.hpp>
#include <troupe/kernels/ref/ops.hpp>

#include <cmath>

namespace troupe::ref {

namespace {

// Ba, Kiros and Hinton, "Layer normalization", 2016. X is seen as [rows,
// width], split at begin_norm_axis. Each row has its own mean and biased
// variance.

struct row_view {
  std::int64_t rows, width;
  shape leading; ///< extents before the axis: the statistics' shape

  row_view(const kernel_context& ctx, const shape& dims) {
    const auto axis = ctx.attributes().get_int("begin_norm_axis", 1);
    require(axis > 0 && axis < static_cast<std::int64_t>(dims.rank()),
            errc::invalid_argument,
            "begin_norm_axis " + std::to_string(axis) + " of "
              + to_string(dims));
    const auto split = static_cast<std::size_t>(axis);
    rows = dims.numel(0, split);
    width = dims.numel(split, dims.rank());
    leading = shape(dims.dims().first(split));
  }
};

double row_epsilon(const kernel_context& ctx) {
  return ctx.attributes().get_float("epsilon", 1e-5f);
}

/// An optional parameter of `width` elements.
array parameter(const kernel_context& ctx, const char* slot, std::int64_t width,
                double otherwise) {
  if (!ctx.has_input(slot))
    return array(shape{width}, otherwise);
  auto value = input(ctx, slot);
  require(value.size() == width, errc::shape_mismatch,
          std::string(slot) + " has shape " + to_string(value.dims)
            + ", expected " + std::to_string(width) + " elements");
  return value;
}

/// Mean over i of `value(i)`.
template <class Function>
double mean_of(std::int64_t width, Function value) {
  double total = 0;
  for (std::int64_t i = 0; i < width; ++i)
    total += value(i);
  return total / static_cast<double>(width);
}

} // namespace

void layer_norm(kernel_context& ctx) {
  auto x = input(ctx, "X");
  const row_view v(ctx, x.dims);
  const auto scale = parameter(ctx, "Scale", v.width, 1);
  const auto bias = parameter(ctx, "Bias", v.width, 0);
  array y(x.dims), mean(v.leading), variance(v.leading);
  for (std::int64_t r = 0; r < v.rows; ++r) {
    const auto start = r * v.width;
    mean[r] = mean_of(v.width, [&](auto i) { return x[start + i]; });
    variance[r] = mean_of(v.width, [&](auto i) {
      return (x[start + i] - mean[r]) * (x[start + i] - mean[r]);
    });
    const double inv_std = 1 / std::sqrt(variance[r] + row_epsilon(ctx));
    for (std::int64_t i = 0; i < v.width; ++i)
      y[start + i] = (x[start + i] - mean[r]) * inv_std * scale[i] + bias[i];
  }
  const auto type = input_type(ctx, "X");
  output(ctx, "Y", y, type);
  output_if_present(ctx, "Mean", mean, type);
  output_if_present(ctx, "Variance", variance, type);
}

void layer_norm_grad(kernel_context& ctx) {
  // With g = dY scale: dX = inv_std (g - mean(g) - xhat mean(g xhat)).
  auto x = input(ctx, "X"), dy = input(ctx, "Y@GRAD"),
       mean = input(ctx, "Mean"), variance = input(ctx, "Variance");
  const row_view v(ctx, x.dims);
  require_same("Y@GRAD", dy.dims, x.dims);
  const auto scale = parameter(ctx, "Scale", v.width, 1);
  array dx(x.dims), dscale(shape{v.width}), dbias(shape{v.width});
  for (std::int64_t r = 0; r < v.rows; ++r) {
    const auto start = r * v.width;
    const double inv_std = 1 / std::sqrt(variance[r] + row_epsilon(ctx));
    auto xhat = [&](auto i) { return (x[start + i] - mean[r]) * inv_std; };
    auto g = [&](auto i) { return dy[start + i] * scale[i]; };
    const double mean_g = mean_of(v.width, g);
    const double mean_g_xhat =
      mean_of(v.width, [&](auto i) { return g(i) * xhat(i); });
    for (std::int64_t i = 0; i < v.width; ++i) {
      dx[start + i] = inv_std * (g(i) - mean_g - xhat(i) * mean_g_xhat);
      dscale[i] += dy[start + i] * xhat(i);
      dbias[i] += dy[start + i];
    }
  }
  const auto type = input_type(ctx, "X");
  output_if_present(ctx, "X@GRAD", dx, type);
  output_if_present(ctx, "Scale@GRAD", dscale, type);
  output_if_present(ctx, "Bias@GRAD", dbias, type);
}

} // namespace troupe::ref
