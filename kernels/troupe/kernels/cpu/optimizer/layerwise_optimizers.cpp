// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/cpu/arguments.hpp>
#include <troupe/kernels/cpu/factories.hpp>
#include <troupe/kernels/cpu/optimizer/row_gradient.hpp>
#include <troupe/kernels/cpu/simd/simd.hpp>
#include <troupe/kernels/cpu/simd/vector_ops.hpp>

#include <troupe/base/error.hpp>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

// Optimizers whose step depends on norms over the whole parameter. They read
// the memory twice.
namespace troupe::cpu {

namespace {

// -------------------------------------------------------------------- lamb

struct lamb_factors {
  float beta1 = 0.9f;
  float beta2 = 0.999f;
  float mean_scale = 1.0f;   // 1 / (1 - beta1^t)
  float square_scale = 1.0f; // 1 / (1 - beta2^t)
  float epsilon = 0.0f;
  float decay = 0.0f;
};

struct lamb_arrays {
  float* p_out;
  float* m_out;
  float* v_out;
  const float* p;
  const float* m;
  const float* v;

  lamb_arrays from(std::int64_t at) const {
    return {p_out + at, m_out + at, v_out + at, p + at, m + at, v + at};
  }
};

// Sums of squares of the parameter and of its unscaled step.
struct lamb_squares {
  double parameter = 0.0;
  double step = 0.0;
};

TROUPE_INLINE float lamb_step(float p, float m, float v,
                              const lamb_factors& f) noexcept {
  return m * f.mean_scale / (__builtin_sqrtf(v * f.square_scale) + f.epsilon)
         + f.decay * p;
}

// Updates the moments of at most 4096 elements: that many squares are summed in
// float.
TROUPE_SIMD lamb_squares lamb_moments_block(lamb_arrays a, const float* grad,
                                            lamb_factors f, std::int64_t n) {
  float parameter = 0.0f;
  float step = 0.0f;
#pragma omp simd reduction(+ : parameter, step)
  for (std::int64_t i = 0; i < n; ++i) {
    const float g = grad[i];
    const float m = f.beta1 * a.m[i] + (1.0f - f.beta1) * g;
    const float v = f.beta2 * a.v[i] + (1.0f - f.beta2) * g * g;
    const float s = lamb_step(a.p[i], m, v, f);
    a.m_out[i] = m;
    a.v_out[i] = v;
    parameter += a.p[i] * a.p[i];
    step += s * s;
  }
  return {static_cast<double>(parameter), static_cast<double>(step)};
}

lamb_squares move_moments(const lamb_arrays& a, const float* grad,
                          const lamb_factors& f, std::int64_t n) {
  constexpr std::int64_t block = 4096;
  lamb_squares total;
  for (std::int64_t at = 0; at < n; at += block) {
    const auto part =
      lamb_moments_block(a.from(at), grad + at, f, std::min(block, n - at));
    total.parameter += part.parameter;
    total.step += part.step;
  }
  return total;
}

TROUPE_SIMD void lamb_update_loop(lamb_arrays a, lamb_factors f, float lr,
                                  std::int64_t n) {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i)
    a.p_out[i] = a.p[i] - lr * lamb_step(a.p[i], a.m_out[i], a.v_out[i], f);
}

// Source: You et al., "Large batch optimization for deep learning", 2020,
// algorithm 2 without bounds on the norm.
class lamb_kernel final : public kernel {
public:
  explicit lamb_kernel(const attribute_map& attributes)
    : adapts_(attributes.get_float("weight_decay", 0.0f) > 0.0f
              || attributes.get_bool("always_adapt", false)) {
    factors_.beta1 = attributes.get_float("beta1", 0.9f);
    factors_.beta2 = attributes.get_float("beta2", 0.999f);
    factors_.epsilon = attributes.get_float("epsilon", 1e-6f);
    factors_.decay = attributes.get_float("weight_decay", 0.0f);
  }

  void run(kernel_context& ctx) override {
    const tensor p = float_input(ctx, "Param");
    const tensor m = float_input(ctx, "Moment1");
    const tensor v = float_input(ctx, "Moment2");
    require_shape("Moment1", m.dims(), p.dims());
    require_shape("Moment2", v.dims(), p.dims());
    grad_.read(ctx, p.dims());
    const float lr = scalar_input(ctx, "LearningRate");
    const float beta1_power = scalar_input(ctx, "Beta1Pow");
    const float beta2_power = scalar_input(ctx, "Beta2Pow");
    factors_.mean_scale = 1.0f / (1.0f - beta1_power);
    factors_.square_scale = 1.0f / (1.0f - beta2_power);
    const bool skip = flag_input(ctx, "SkipUpdate") || grad_.empty();
    const lamb_arrays a{out_of(ctx, "ParamOut", p, skip),
                        out_of(ctx, "Moment1Out", m, skip),
                        out_of(ctx, "Moment2Out", v, skip),
                        p.data<float>(),
                        m.data<float>(),
                        v.data<float>()};
    if (!skip)
      update(a, lr, p.numel());
    grad_.clear();
    write_power(ctx, "Beta1PowOut", beta1_power, skip ? 1 : factors_.beta1);
    write_power(ctx, "Beta2PowOut", beta2_power, skip ? 1 : factors_.beta2);
  }

private:
  static float* out_of(kernel_context& ctx, std::string_view slot,
                       const tensor& value, bool copied) {
    float* to = float_output(ctx, slot, value.dims()).data<float>();
    if (copied)
      copy(to, value.data<float>(), value.numel());
    return to;
  }

  void update(const lamb_arrays& a, float lr, std::int64_t n) const {
    lamb_squares total;
    grad_.for_each_in_turn(
      [&](std::int64_t at, const float* g, std::int64_t count) {
        const auto part = move_moments(a.from(at), g, factors_, count);
        total.parameter += part.parameter;
        total.step += part.step;
      });
    if (adapts_ && total.parameter > 0.0 && total.step > 0.0)
      lr *= static_cast<float>(std::sqrt(total.parameter / total.step));
    lamb_update_loop(a, factors_, lr, n);
  }

  static void write_power(kernel_context& ctx, std::string_view slot,
                          float power, float beta) {
    if (ctx.has_output(slot))
      float_output(ctx, slot, {1}).data<float>()[0] = power * beta;
  }

  bool adapts_; // scales the learning rate by the norms
  lamb_factors factors_;
  row_gradient grad_;
};

// -------------------------------------------------------------------- lars

struct lars_factors {
  float rate = 0.0f; // learning rate of this parameter
  float mu = 0.0f;
  float rescale = 1.0f;
  float decay = 0.0f;
};

struct lars_arrays {
  float* p_out;
  float* v_out;
  const float* p;
  const float* v;
  const float* g;
};

// v = mu v + rate (rescale g + decay p);  p -= v
TROUPE_SIMD void lars_loop(lars_arrays a, lars_factors f, std::int64_t n) {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) {
    const float g = f.rescale * a.g[i] + f.decay * a.p[i];
    const float v = f.mu * a.v[i] + f.rate * g;
    a.p_out[i] = a.p[i] - v;
    a.v_out[i] = v;
  }
}

// Source: You, Gitman and Ginsburg, "Large batch training of convolutional
// networks", 2017. One op may update several parameters.
class lars_momentum_kernel final : public kernel {
public:
  explicit lars_momentum_kernel(const attribute_map& attributes)
    : coefficient_(attributes.get_float("lars_coeff", 0.001f)),
      epsilon_(attributes.get_float("epsilon", 0.0f)),
      decays_(attributes.get_floats("lars_weight_decay", {0.0005})) {
    factors_.mu = attributes.get_float("mu", 0.0f);
    factors_.rescale = attributes.get_float("rescale_grad", 1.0f);
  }

  void run(kernel_context& ctx) override {
    const std::size_t count = ctx.num_inputs("Param");
    if (decays_.size() < count)
      throw error(errc::invalid_argument,
                  "attribute lars_weight_decay has "
                    + std::to_string(decays_.size()) + " values for "
                    + std::to_string(count) + " parameters");
    for (std::size_t i = 0; i < count; ++i)
      update(ctx, i);
  }

private:
  void update(kernel_context& ctx, std::size_t i) {
    const tensor p = float_input(ctx, "Param", i);
    const tensor g = float_input(ctx, "Grad", i);
    const tensor v = float_input(ctx, "Velocity", i);
    require_shape("Grad", g.dims(), p.dims());
    require_shape("Velocity", v.dims(), p.dims());
    const tensor lr = float_input(ctx, "LearningRate", i);
    if (lr.numel() != 1)
      throw_shape("LearningRate", lr.dims(), "expected one element");
    factors_.decay = static_cast<float>(decays_[i]);
    factors_.rate = lr.data<float>()[0] * trust(p, g);
    tensor p_out = float_output(ctx, "ParamOut", p.dims(), i);
    tensor v_out = float_output(ctx, "VelocityOut", p.dims(), i);
    lars_loop({p_out.data<float>(), v_out.data<float>(), p.data<float>(),
               v.data<float>(), g.data<float>()},
              factors_, p.numel());
  }

  // Paddle scales a parameter's learning rate only if the parameter decays.
  float trust(const tensor& p, const tensor& g) const {
    if (!(factors_.decay > 0.0f))
      return 1.0f;
    const double p_norm = std::sqrt(sum_squares(p.data<float>(), p.numel()));
    const double g_norm = std::sqrt(sum_squares(g.data<float>(), g.numel()))
                          * std::abs(static_cast<double>(factors_.rescale));
    if (!(p_norm > 0.0) || !(g_norm > 0.0))
      return 1.0f;
    const double decay = static_cast<double>(factors_.decay);
    return static_cast<float>(
      static_cast<double>(coefficient_) * p_norm
      / (g_norm + decay * p_norm + static_cast<double>(epsilon_)));
  }

  float coefficient_;
  float epsilon_;
  std::vector<double> decays_; // one per parameter
  lars_factors factors_;
};

} // namespace

std::unique_ptr<kernel> make_lamb(const attribute_map& attributes) {
  return std::make_unique<lamb_kernel>(attributes);
}

std::unique_ptr<kernel> make_lars_momentum(const attribute_map& attributes) {
  return std::make_unique<lars_momentum_kernel>(attributes);
}

} // namespace troupe::cpu
