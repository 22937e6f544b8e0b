// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/cpu/arguments.hpp>
#include <troupe/kernels/cpu/factories.hpp>
#include <troupe/kernels/cpu/optimizer/in_ranges.hpp>
#include <troupe/kernels/cpu/simd/simd.hpp>
#include <troupe/kernels/cpu/simd/vector_ops.hpp>

#include <troupe/base/error.hpp>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

namespace troupe::cpu {

namespace {

// Source: Ba, Kiros and Hinton, "Layer normalization", 2016. X is seen as
// [rows, width]; each row has its own mean and biased variance.
struct row_view {
  std::int64_t rows = 0;
  std::int64_t width = 0;
};

TROUPE_SIMD float squares_around(const float* x, float mean, std::int64_t n) {
  float total = 0.0f;
#pragma omp simd reduction(+ : total)
  for (std::int64_t i = 0; i < n; ++i)
    total += (x[i] - mean) * (x[i] - mean);
  return total;
}

TROUPE_SIMD void normalize_row(float* y, const float* x, const float* scale,
                               const float* bias, float mean, float inverse,
                               std::int64_t n) {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i)
    y[i] = (x[i] - mean) * inverse * scale[i] + bias[i];
}

struct gradient_sums {
  float g = 0.0f;      // sum of dY scale
  float g_xhat = 0.0f; // sum of dY scale xhat
};

TROUPE_SIMD gradient_sums sum_gradient(const float* x, const float* dy,
                                       const float* scale, float mean,
                                       float inverse, std::int64_t n) {
  float g_total = 0.0f;
  float g_xhat_total = 0.0f;
#pragma omp simd reduction(+ : g_total, g_xhat_total)
  for (std::int64_t i = 0; i < n; ++i) {
    const float g = dy[i] * scale[i];
    g_total += g;
    g_xhat_total += g * ((x[i] - mean) * inverse);
  }
  return {g_total, g_xhat_total};
}

TROUPE_SIMD void input_row(float* dx, const float* x, const float* dy,
                           const float* scale, float mean, float inverse,
                           gradient_sums means, std::int64_t n) {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) {
    const float xhat = (x[i] - mean) * inverse;
    dx[i] = inverse * (dy[i] * scale[i] - means.g - xhat * means.g_xhat);
  }
}

TROUPE_SIMD void add_parameter_row(float* dscale, float* dbias, const float* x,
                                   const float* dy, float mean, float inverse,
                                   std::int64_t n) {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) {
    dscale[i] += dy[i] * ((x[i] - mean) * inverse);
    dbias[i] += dy[i];
  }
}

class layer_norm_base : public kernel {
public:
  explicit layer_norm_base(const attribute_map& attributes)
    : axis_(attributes.get_int("begin_norm_axis", 1)),
      epsilon_(attributes.get_float("epsilon", 1e-5f)) {}

protected:
  row_view view_of(const shape& x) const {
    if (axis_ < 1 || axis_ >= static_cast<std::int64_t>(x.rank()))
      throw_shape(
        "X", x, "cannot be split at begin_norm_axis " + std::to_string(axis_));
    const auto split = static_cast<std::size_t>(axis_);
    return {x.numel(0, split), x.numel(split, x.rank())};
  }

  // An optional parameter. If it is missing, all its values are `otherwise`.
  static const float* parameter(const kernel_context& ctx,
                                std::string_view slot, std::int64_t width,
                                float otherwise, tensor& held,
                                std::vector<float>& constant) {
    if (ctx.has_input(slot)) {
      held = float_input(ctx, slot);
      if (held.numel() != width)
        require_shape(slot, held.dims(), {width});
      return held.data<float>();
    }
    constant.assign(static_cast<std::size_t>(width), otherwise);
    return constant.data();
  }

  float inverse(float variance) const {
    return 1.0f / std::sqrt(variance + epsilon_);
  }

  std::int64_t axis_;
  std::vector<float> ones_;
  std::vector<float> zeros_;

private:
  float epsilon_;
};

class layer_norm_kernel final : public layer_norm_base {
public:
  using layer_norm_base::layer_norm_base;
  void run(kernel_context& ctx) override {
    const tensor x = float_input(ctx, "X");
    const row_view v = view_of(x.dims());
    tensor scale_held;
    tensor bias_held;
    const float* scale =
      parameter(ctx, "Scale", v.width, 1.0f, scale_held, ones_);
    const float* bias =
      parameter(ctx, "Bias", v.width, 0.0f, bias_held, zeros_);
    tensor y = float_output(ctx, "Y", x.dims());
    tensor mean = statistic(ctx, "Mean", x.dims());
    tensor variance = statistic(ctx, "Variance", x.dims());
    in_rows(ctx, v.rows, v.width, [&](std::int64_t first, std::int64_t rows) {
      for (std::int64_t r = first; r < first + rows; ++r)
        normalize(x.data<float>() + r * v.width, scale, bias, v.width,
                  y.data<float>() + r * v.width, mean.data<float>()[r],
                  variance.data<float>()[r]);
    });
  }

private:
  void normalize(const float* x, const float* scale, const float* bias,
                 std::int64_t width, float* y, float& mean,
                 float& variance) const {
    const auto count = static_cast<double>(std::max<std::int64_t>(width, 1));
    mean = static_cast<float>(sum(x, width) / count);
    variance = squares_around(x, mean, width) / static_cast<float>(count);
    normalize_row(y, x, scale, bias, mean, inverse(variance), width);
  }

  // One value per row; its shape is X's extents before the axis.
  tensor statistic(kernel_context& ctx, std::string_view slot,
                   const shape& x) const {
    const shape dims(x.dims().first(static_cast<std::size_t>(axis_)));
    return ctx.has_output(slot) ? float_output(ctx, slot, dims)
                                : ctx.scratch(dims.numel());
  }
};

// With g = dY scale: dX = inv_std (g - mean(g) - xhat mean(g xhat)).
class layer_norm_grad_kernel final : public layer_norm_base {
public:
  using layer_norm_base::layer_norm_base;
  void run(kernel_context& ctx) override {
    const tensor x = float_input(ctx, "X");
    const tensor dy = float_input(ctx, "Y@GRAD");
    const tensor mean = float_input(ctx, "Mean");
    const tensor variance = float_input(ctx, "Variance");
    require_shape("Y@GRAD", dy.dims(), x.dims());
    const row_view v = view_of(x.dims());
    if (mean.numel() != v.rows || variance.numel() != v.rows)
      throw_shapes("Mean", mean.dims(), "Variance", variance.dims(),
                   "expected one value per row");
    const arrays a{x.data<float>(), dy.data<float>(), mean.data<float>(),
                   variance.data<float>()};
    // Parameter gradients first: X@GRAD may overwrite X or Y@GRAD.
    if (ctx.has_output("Scale@GRAD") || ctx.has_output("Bias@GRAD"))
      parameter_gradients(ctx, v, a);
    if (ctx.has_output("X@GRAD"))
      input_gradient(ctx, v, a, x.dims());
  }

private:
  struct arrays {
    const float* x;
    const float* dy;
    const float* mean;
    const float* variance;
  };

  void input_gradient(kernel_context& ctx, const row_view& v, const arrays& a,
                      const shape& dims) {
    tensor held;
    const float* scale = parameter(ctx, "Scale", v.width, 1.0f, held, ones_);
    tensor dx = float_output(ctx, "X@GRAD", dims);
    if (v.width == 1) // a single element is always normalized to zero
      return fill(dx.data<float>(), v.rows, 0.0f);
    const float share = 1.0f / static_cast<float>(v.width);
    float* to = dx.data<float>();
    in_rows(ctx, v.rows, v.width, [&](std::int64_t first, std::int64_t rows) {
      for (std::int64_t r = first; r < first + rows; ++r) {
        const std::int64_t at = r * v.width;
        const float inv = inverse(a.variance[r]);
        gradient_sums s =
          sum_gradient(a.x + at, a.dy + at, scale, a.mean[r], inv, v.width);
        s = {s.g * share, s.g_xhat * share};
        input_row(to + at, a.x + at, a.dy + at, scale, a.mean[r], inv, s,
                  v.width);
      }
    });
  }

  // Sums over rows: first within blocks of rows, then over the blocks.
  void parameter_gradients(kernel_context& ctx, const row_view& v,
                           const arrays& a) {
    constexpr std::int64_t block_rows = 128;
    const auto width = static_cast<std::size_t>(v.width);
    total_.assign(2 * width, 0.0f);
    for (std::int64_t r = 0; r < v.rows; r += block_rows) {
      partial_.assign(2 * width, 0.0f);
      add_rows(v, a, r, std::min(r + block_rows, v.rows));
      accumulate(total_.data(), partial_.data(), 1.0f, 2 * v.width);
    }
    write(ctx, "Scale@GRAD", total_.data(), v.width);
    write(ctx, "Bias@GRAD", total_.data() + v.width, v.width);
  }

  void add_rows(const row_view& v, const arrays& a, std::int64_t first,
                std::int64_t last) {
    for (std::int64_t r = first; r < last; ++r)
      add_parameter_row(partial_.data(), partial_.data() + v.width,
                        a.x + r * v.width, a.dy + r * v.width, a.mean[r],
                        inverse(a.variance[r]), v.width);
  }

  static void write(kernel_context& ctx, std::string_view slot,
                    const float* values, std::int64_t width) {
    if (!ctx.has_output(slot))
      return;
    tensor out = float_output(ctx, slot, {width});
    copy(out.data<float>(), values, width);
  }

  std::vector<float> total_;
  std::vector<float> partial_;
};

} // namespace

std::unique_ptr<kernel> make_layer_norm(const attribute_map& attributes) {
  return std::make_unique<layer_norm_kernel>(attributes);
}

std::unique_ptr<kernel> make_layer_norm_grad(const attribute_map& attributes) {
  return std::make_unique<layer_norm_grad_kernel>(attributes);
}

} // namespace troupe::cpu
