// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/cpu/arguments.hpp>
#include <troupe/kernels/cpu/factories.hpp>
#include <troupe/kernels/cpu/optimizer/row_gradient.hpp>
#include <troupe/kernels/cpu/optimizer/updated_tensor.hpp>
#include <troupe/kernels/cpu/simd/simd.hpp>
#include <troupe/kernels/cpu/simd/vector_ops.hpp>

#include <cmath>

namespace troupe::cpu {

namespace {

struct adam_factors {
  float beta1 = 0.9f;
  float beta2 = 0.999f;
  float step = 0.0f;    // learning rate with both bias corrections
  float epsilon = 0.0f; // scaled like the root of the second moment
  float keep = 1.0f;    // parameter's factor, 1 - decay
};

// What the step reads and writes; outputs may be the inputs.
struct adam_arrays {
  float* p_out;
  float* m_out;
  float* v_out;
  const float* p;
  const float* m;
  const float* v;

  adam_arrays from(std::int64_t at) const {
    return {p_out + at, m_out + at, v_out + at, p + at, m + at, v + at};
  }
};

// Source: Kingma and Ba, "Adam", 2015, the efficient form at the end of
// section 2, with epsilon scaled so that it equals algorithm 1.
TROUPE_SIMD void adam_loop(adam_arrays a, const float* grad, adam_factors f,
                           std::int64_t n) {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) {
    const float g = grad[i];
    const float m = f.beta1 * a.m[i] + (1.0f - f.beta1) * g;
    const float v = f.beta2 * a.v[i] + (1.0f - f.beta2) * g * g;
    a.p_out[i] =
      f.keep * a.p[i] - f.step * m / (__builtin_sqrtf(v) + f.epsilon);
    a.m_out[i] = m;
    a.v_out[i] = v;
  }
}

bool writes_in_place(const kernel_context& ctx, std::string_view slot,
                     std::string_view out_slot) {
  return ctx.has_output(out_slot)
         && &ctx.input_variable(slot) == &ctx.output_variable(out_slot);
}

// Source of the decay: Loshchilov and Hutter, "Decoupled weight decay
// regularization", 2019.
class adam_kernel final : public kernel {
public:
  adam_kernel(const attribute_map& attributes, bool decays, precision factors)
    : beta1_(attributes.get_float("beta1", 0.9f)),
      beta2_(attributes.get_float("beta2", 0.999f)),
      epsilon_(attributes.get_float("epsilon", 1e-8f)),
      decay_(decays && attributes.get_bool("with_decay", false)
               ? attributes.get_float("coeff", 0.01f)
                   * attributes.get_float("lr_ratio", 1.0f)
               : 0.0f),
      lazy_(attributes.get_bool("lazy_mode", false)),
      global_powers_(attributes.get_bool("use_global_beta_pow", false)),
      grad_(factors) {}

  void run(kernel_context& ctx) override {
    const auto format = update_layout(ctx);
    auto p = updated(ctx, "Param", "ParamOut", format);
    auto m = updated(ctx, "Moment1", "Moment1Out", format);
    auto v = updated(ctx, "Moment2", "Moment2Out", format);
    require_shape("Moment1", m.in.dims(), p.in.dims());
    require_shape("Moment2", v.in.dims(), p.in.dims());
    grad_.read(ctx, p.in.dims(), format);
    const bool skip = flag_input(ctx, "SkipUpdate") || grad_.empty();
    const float beta1 = scalar_input(ctx, "Beta1Tensor", beta1_);
    const float beta2 = scalar_input(ctx, "Beta2Tensor", beta2_);
    const adam_factors f = factors(ctx, beta1, beta2);
    const adam_arrays arrays{p.out.data<float>(), m.out.data<float>(),
                             v.out.data<float>(), p.in.data<float>(),
                             m.in.data<float>(),  v.in.data<float>()};
    if (skip || lazy_)
      for (auto* each : {&p, &m, &v})
        copy(each->out.data<float>(), each->in.data<float>(), each->in.numel());
    if (!skip)
      update(ctx, arrays, f);
    grad_.clear();
    if (global_powers_)
      return;
    advance_power(ctx, "Beta1Pow", "Beta1PowOut", skip ? 1.0f : beta1);
    advance_power(ctx, "Beta2Pow", "Beta2PowOut", skip ? 1.0f : beta2);
  }

private:
  adam_factors factors(const kernel_context& ctx, float beta1,
                       float beta2) const {
    const float lr = scalar_input(ctx, "LearningRate");
    float beta1_power = scalar_input(ctx, "Beta1Pow");
    float beta2_power = scalar_input(ctx, "Beta2Pow");
    // Paddle's CPU kernel for rows advances the powers before it reads them. If
    // they are updated in place, its bias correction is that of the next step.
    // This kernel does the same, so that losses are equal.
    const bool ahead = !global_powers_ && !grad_.is_dense();
    if (ahead && writes_in_place(ctx, "Beta1Pow", "Beta1PowOut"))
      beta1_power *= beta1;
    if (ahead && writes_in_place(ctx, "Beta2Pow", "Beta2PowOut"))
      beta2_power *= beta2;
    const float root = std::sqrt(1.0f - beta2_power);
    return {.beta1 = beta1,
            .beta2 = beta2,
            .step = lr * root / (1.0f - beta1_power),
            .epsilon = scalar_input(ctx, "EpsilonTensor", epsilon_) * root,
            .keep = 1.0f - lr * decay_};
  }

  void update(const kernel_context& ctx, const adam_arrays& arrays,
              const adam_factors& f) {
    const auto run = [&](std::int64_t at, const float* g, std::int64_t n) {
      adam_loop(arrays.from(at), g, f, n);
    };
    if (lazy_)
      return grad_.for_each_present(ctx, run);
    // Paddle does not scale epsilon for rows that are missing.
    adam_factors missing = f;
    missing.epsilon = scalar_input(ctx, "EpsilonTensor", epsilon_);
    grad_.for_each(ctx, run,
                   [&](std::int64_t at, const float* g, std::int64_t n) {
                     adam_loop(arrays.from(at), g, missing, n);
                   });
  }

  static void advance_power(kernel_context& ctx, std::string_view slot,
                            std::string_view out_slot, float beta) {
    if (!ctx.has_output(out_slot))
      return;
    const float power = scalar_input(ctx, slot);
    tensor out = float_output(ctx, out_slot, ctx.input(slot).dims());
    out.data<float>()[0] = power * beta;
  }

  float beta1_;
  float beta2_;
  float epsilon_;
  float decay_; // share of the parameter per unit of learning rate
  bool lazy_;
  bool global_powers_; // other ops advance the powers
  row_gradient grad_;
};

} // namespace

std::unique_ptr<kernel> make_adam(const attribute_map& attributes,
                                  const kernel_options& options) {
  return std::make_unique<adam_kernel>(attributes, false, options.factors);
}

std::unique_ptr<kernel> make_adamw(const attribute_map& attributes,
                                   const kernel_options& options) {
  return std::make_unique<adam_kernel>(attributes, true, options.factors);
}

} // namespace troupe::cpu
