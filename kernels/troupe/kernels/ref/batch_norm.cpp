// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/ref/array.hpp>
#include <troupe/kernels/ref/ops.hpp>

#include <cmath>

namespace troupe::ref {

namespace {

// Ioffe and Szegedy, "Batch normalization", 2015, section 3; Paddle's slots:
// SavedVariance is the inverse standard deviation 1 / sqrt(variance + epsilon).

/// X seen as [samples, channels, pixels]; statistics are per channel.
struct channels {
  axis_view view;
  std::int64_t per_channel; ///< elements of one channel

  channels(const kernel_context& ctx, const shape& dims) {
    require(dims.rank() >= 2, errc::shape_mismatch,
            "batch_norm takes [N, C, ...], not " + to_string(dims));
    const auto layout = ctx.attributes().get_string("data_layout", "NCHW");
    require(layout == "NCHW" || layout == "AnyLayout", errc::invalid_argument,
            "data_layout " + layout + " is not supported");
    view = around(dims, 1);
    per_channel = view.outer * view.inner;
  }

  shape dims() const { return {view.extent}; }

  /// Calls `f(channel, offset)` for each element.
  template <class Function>
  void for_each(Function f) const {
    for (std::int64_t n = 0; n < view.outer; ++n)
      for (std::int64_t c = 0; c < view.extent; ++c)
        for (std::int64_t p = 0; p < view.inner; ++p)
          f(c, view.at(n, c, p));
  }

  /// Mean over each channel of `value(channel, offset)`; 0 without elements.
  template <class Function>
  array mean_of(Function value) const {
    array result(dims());
    if (per_channel == 0)
      return result;
    for_each([&](auto c, auto i) { result[c] += value(c, i); });
    for (double& v : result.values)
      v /= static_cast<double>(per_channel);
    return result;
  }
};

double epsilon_of(const kernel_context& ctx) {
  return ctx.attributes().get_float("epsilon", 1e-5f);
}

bool uses_global(const kernel_context& ctx) {
  const auto& a = ctx.attributes();
  const bool test =
    a.get_bool("is_test", false) && !a.get_bool("trainable_statistics", false);
  return test || a.get_bool("use_global_stats", false);
}

array inverse_std(array variance, double epsilon) {
  for (double& v : variance.values)
    v = 1 / std::sqrt(v + epsilon);
  return variance;
}

struct affine {
  array scale, bias;

  affine(const kernel_context& ctx, const channels& c)
    : scale(input(ctx, "Scale")), bias(input(ctx, "Bias")) {
    require_same("Scale", scale.dims, c.dims());
    require_same("Bias", bias.dims, c.dims());
  }
};

array normalized(const array& x, const channels& c, const array& mean,
                 const array& inv_std) {
  array result(x.dims);
  c.for_each(
    [&](auto k, auto i) { result[i] = (x[i] - mean[k]) * inv_std[k]; });
  return result;
}

/// momentum * running + (1 - momentum) * batch.
array moved(array running, const array& batch, double momentum) {
  for (std::int64_t i = 0; i < running.size(); ++i)
    running[i] = momentum * running[i] + (1 - momentum) * batch[i];
  return running;
}

void write_y(kernel_context& ctx, const array& x, const channels& c,
             const array& mean, const array& inv_std) {
  const affine a(ctx, c);
  auto y = normalized(x, c, mean, inv_std);
  c.for_each([&](auto k, auto i) { y[i] = y[i] * a.scale[k] + a.bias[k]; });
  output(ctx, "Y", y, input_type(ctx, "X"));
}

/// One element per channel has no variance: as in Paddle, X is passed through,
/// zeros are saved and the running statistics stay.
void pass_through(kernel_context& ctx, const array& x, const channels& c,
                  const array& mean, const array& variance) {
  const auto type = input_type(ctx, "Scale");
  output(ctx, "Y", x, input_type(ctx, "X"));
  output_if_present(ctx, "MeanOut", mean, type);
  output_if_present(ctx, "VarianceOut", variance, type);
  output_if_present(ctx, "SavedMean", array(c.dims()), type);
  output_if_present(ctx, "SavedVariance", array(c.dims()), type);
}

void train(kernel_context& ctx, const array& x, const channels& c,
           const array& mean, const array& variance) {
  const auto batch_mean = c.mean_of([&](auto, auto i) { return x[i]; });
  const auto batch_variance = c.mean_of([&](auto k, auto i) {
    return (x[i] - batch_mean[k]) * (x[i] - batch_mean[k]);
  });
  const auto inv_std = inverse_std(batch_variance, epsilon_of(ctx));
  const double keep = ctx.attributes().get_float("momentum", 0.9f);
  const auto type = input_type(ctx, "Scale");
  write_y(ctx, x, c, batch_mean, inv_std);
  output_if_present(ctx, "MeanOut", moved(mean, batch_mean, keep), type);
  output_if_present(ctx, "VarianceOut", moved(variance, batch_variance, keep),
                    type);
  output_if_present(ctx, "SavedMean", batch_mean, type);
  output_if_present(ctx, "SavedVariance", inv_std, type);
}

/// dX = scale inv_std (dY - mean(dY) - xhat mean(dY xhat)); with fixed
/// statistics, dX = scale inv_std dY.
array input_gradient(const channels& c, const array& dy, const array& xhat,
                     const array& scale, const array& inv_std, bool fixed) {
  array dx(dy.dims), mean_dy(c.dims()), mean_dy_xhat(c.dims());
  if (!fixed) {
    mean_dy = c.mean_of([&](auto, auto i) { return dy[i]; });
    mean_dy_xhat = c.mean_of([&](auto, auto i) { return dy[i] * xhat[i]; });
  }
  c.for_each([&](auto k, auto i) {
    dx[i] =
      scale[k] * inv_std[k] * (dy[i] - mean_dy[k] - xhat[i] * mean_dy_xhat[k]);
  });
  return dx;
}

} // namespace

void batch_norm(kernel_context& ctx) {
  auto x = input(ctx, "X"), mean = input(ctx, "Mean"),
       variance = input(ctx, "Variance");
  const channels c(ctx, x.dims);
  require_same("Mean", mean.dims, c.dims());
  require_same("Variance", variance.dims, c.dims());
  if (!uses_global(ctx) && c.per_channel > 1)
    return train(ctx, x, c, mean, variance);
  if (!uses_global(ctx))
    return pass_through(ctx, x, c, mean, variance);
  const auto type = input_type(ctx, "Scale");
  write_y(ctx, x, c, mean, inverse_std(variance, epsilon_of(ctx)));
  output_if_present(ctx, "MeanOut", mean, type);
  output_if_present(ctx, "VarianceOut", variance, type);
}

void batch_norm_grad(kernel_context& ctx) {
  auto x = input(ctx, "X"), dy = input(ctx, "Y@GRAD"),
       scale = input(ctx, "Scale");
  const channels c(ctx, x.dims);
  require_same("Y@GRAD", dy.dims, x.dims);
  require_same("Scale", scale.dims, c.dims());
  const bool fixed = uses_global(ctx);
  const bool passed = !fixed && c.per_channel <= 1;
  const auto mean = input(ctx, fixed ? "Mean" : "SavedMean");
  const auto inv_std = fixed
                         ? inverse_std(input(ctx, "Variance"), epsilon_of(ctx))
                         : input(ctx, "SavedVariance");
  const auto xhat = normalized(x, c, mean, inv_std);
  array dscale(c.dims()), dbias(c.dims());
  if (!passed)
    c.for_each([&](auto k, auto i) {
      dscale[k] += dy[i] * xhat[i];
      dbias[k] += dy[i];
    });
  const auto type = input_type(ctx, "Scale");
  output_if_present(ctx, "X@GRAD",
                    passed ? dy
                           : input_gradient(c, dy, xhat, scale, inv_std, fixed),
                    input_type(ctx, "X"));
  output_if_present(ctx, "Scale@GRAD", dscale, type);
  output_if_present(ctx, "Bias@GRAD", dbias, type);
}

} // namespace troupe::ref
