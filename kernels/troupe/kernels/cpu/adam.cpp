// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/cpu/arguments.hpp>
#include <troupe/kernels/cpu/factories.hpp>
#include <troupe/kernels/cpu/row_gradient.hpp>
#include <troupe/kernels/cpu/simd.hpp>
#include <troupe/kernels/cpu/vector_ops.hpp>

#include <cmath>

namespace troupe::cpu {

namespace {

struct adam_factors {
  float beta1 = 0.9f;
  float beta2 = 0.999f;
  float step = 0.0f;    // learning rate with both corrections of the bias
  float epsilon = 0.0f; // scaled like the root of the second moment
};

// Where the step writes and what it reads; outputs may be the inputs.
struct adam_arrays {
  float* p_out;
  float* m_out;
  float* v_out;
  const float* p;
  const float* m;
  const float* v;
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
    a.p_out[i] = a.p[i] - f.step * m / (__builtin_sqrtf(v) + f.epsilon);
    a.m_out[i] = m;
    a.v_out[i] = v;
  }
}

class adam_kernel final : public kernel {
public:
  explicit adam_kernel(const attribute_map& attributes)
    : epsilon_(attributes.get_float("epsilon", 1e-8f)),
      lazy_(attributes.get_bool("lazy_mode", false)) {
    factors_.beta1 = attributes.get_float("beta1", 0.9f);
    factors_.beta2 = attributes.get_float("beta2", 0.999f);
  }

  void run(kernel_context& ctx) override {
    const tensor p = float_input(ctx, "Param");
    const tensor m = float_input(ctx, "Moment1");
    const tensor v = float_input(ctx, "Moment2");
    require_shape("Moment1", m.dims(), p.dims());
    require_shape("Moment2", v.dims(), p.dims());
    correct_bias(ctx);
    grad_.read(ctx, p.dims());
    update(ctx, p, m, v);
    grad_.clear();
    advance_power(ctx, "Beta1Pow", "Beta1PowOut", factors_.beta1);
    advance_power(ctx, "Beta2Pow", "Beta2PowOut", factors_.beta2);
  }

private:
  void correct_bias(const kernel_context& ctx) {
    const float lr = scalar_input(ctx, "LearningRate");
    float beta1_power = scalar_input(ctx, "Beta1Pow");
    float beta2_power = scalar_input(ctx, "Beta2Pow");
    // Paddle's CPU kernel for rows advances the powers in place before it
    // reads them, so its bias correction is that of the next step; the same
    // losses need the same correction.
    if (ctx.input_variable("Grad").is_rows() && ctx.has_output("Beta1PowOut")) {
      beta1_power *= factors_.beta1;
      beta2_power *= factors_.beta2;
    }
    const float root = std::sqrt(1.0f - beta2_power);
    factors_.step = lr * root / (1.0f - beta1_power);
    factors_.epsilon = epsilon_ * root;
  }

  void update(kernel_context& ctx, const tensor& p, const tensor& m,
              const tensor& v) {
    tensor p_out = output_like(ctx, "ParamOut", p);
    tensor m_out = output_like(ctx, "Moment1Out", m);
    tensor v_out = output_like(ctx, "Moment2Out", v);
    const auto run = [&](std::int64_t at, const float* g, std::int64_t n) {
      adam_loop({p_out.data<float>() + at, m_out.data<float>() + at,
                 v_out.data<float>() + at, p.data<float>() + at,
                 m.data<float>() + at, v.data<float>() + at},
                g, factors_, n);
    };
    if (lazy_)
      grad_.for_each_present(run);
    else
      grad_.for_each(run);
  }

  // With lazy_mode rows may be left out, so the output starts as the input.
  tensor output_like(kernel_context& ctx, std::string_view slot,
                     const tensor& value) const {
    tensor out = float_output(ctx, slot, value.dims());
    if (lazy_)
      copy(out.data<float>(), value.data<float>(), value.numel());
    return out;
  }

  static void advance_power(kernel_context& ctx, std::string_view slot,
                            std::string_view out_slot, float beta) {
    if (!ctx.has_output(out_slot))
      return;
    const float power = scalar_input(ctx, slot);
    tensor out = float_output(ctx, out_slot, ctx.input(slot).dims());
    out.data<float>()[0] = power * beta;
  }

  float epsilon_;
  bool lazy_;
  adam_factors factors_;
  row_gradient grad_;
};

} // namespace

std::unique_ptr<kernel> make_adam(const attribute_map& attributes) {
  return std::make_unique<adam_kernel>(attributes);
}

} // namespace troupe::cpu
