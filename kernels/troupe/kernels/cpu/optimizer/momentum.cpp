// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/cpu/arguments.hpp>
#include <troupe/kernels/cpu/factories.hpp>
#include <troupe/kernels/cpu/optimizer/row_gradient.hpp>
#include <troupe/kernels/cpu/optimizer/updated_tensor.hpp>
#include <troupe/kernels/cpu/simd/simd.hpp>
#include <troupe/kernels/cpu/simd/vector_ops.hpp>

#include <troupe/base/error.hpp>

#include <cmath>

namespace troupe::cpu {

namespace {

struct momentum_factors {
  float lr = 0.0f;
  float mu = 0.0f;
  float rescale = 1.0f;
  float decay = 0.0f;
};

// What the step reads and writes; outputs may be the inputs.
struct momentum_arrays {
  float* p_out;
  float* v_out;
  const float* p;
  const float* v;
};

// g = rescale g + decay p;  v = mu v + g;  p -= lr v
TROUPE_SIMD void momentum_loop(momentum_arrays a, const float* grad,
                               momentum_factors f, std::int64_t n) {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) {
    const float g = f.rescale * grad[i] + f.decay * a.p[i];
    const float v = f.mu * a.v[i] + g;
    a.p_out[i] = a.p[i] - f.lr * v;
    a.v_out[i] = v;
  }
}

// Nesterov's look-ahead: p -= lr (g + mu v).
// Source: Sutskever et al., "On the importance of initialization and momentum
// in deep learning", 2013, in Paddle's form.
TROUPE_SIMD void nesterov_loop(momentum_arrays a, const float* grad,
                               momentum_factors f, std::int64_t n) {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) {
    const float g = f.rescale * grad[i] + f.decay * a.p[i];
    const float v = f.mu * a.v[i] + g;
    a.p_out[i] = a.p[i] - f.lr * (g + f.mu * v);
    a.v_out[i] = v;
  }
}

class momentum_kernel final : public kernel {
public:
  momentum_kernel(const attribute_map& attributes, precision factors)
    : nesterov_(attributes.get_bool("use_nesterov", false)),
      rescale_(attributes.get_float("rescale_grad", 1.0f)), grad_(factors) {
    factors_.mu = attributes.get_float("mu", 0.0f);
    if (attributes.get_string("regularization_method", "") == "l2_decay")
      factors_.decay = attributes.get_float("regularization_coeff", 0.0f);
  }

  void run(kernel_context& ctx) override {
    const auto format = update_layout(ctx);
    auto p = updated(ctx, "Param", "ParamOut", format);
    auto v = updated(ctx, "Velocity", "VelocityOut", format);
    require_shape("Velocity", v.in.dims(), p.in.dims());
    factors_.lr = scalar_input(ctx, "LearningRate");
    grad_.read(ctx, p.in.dims(), format);
    // Paddle's CPU kernel rescales only gradients that are rows.
    factors_.rescale = grad_.is_dense() ? 1.0f : rescale_;
    const momentum_arrays a{p.out.data<float>(), v.out.data<float>(),
                            p.in.data<float>(), v.in.data<float>()};
    if (grad_.empty())
      stand_still(a, p.in.numel());
    else
      update(ctx, a);
    grad_.clear();
  }

private:
  static void stand_still(const momentum_arrays& a, std::int64_t n) {
    copy(a.p_out, a.p, n);
    copy(a.v_out, a.v, n);
  }

  void update(const kernel_context& ctx, const momentum_arrays& a) {
    const auto loop = nesterov_ ? nesterov_loop : momentum_loop;
    grad_.for_each(ctx, [&](std::int64_t at, const float* g, std::int64_t n) {
      loop({a.p_out + at, a.v_out + at, a.p + at, a.v + at}, g, factors_, n);
    });
  }

  bool nesterov_;
  float rescale_;
  momentum_factors factors_;
  row_gradient grad_;
};

// Momentum up to the step from which gradients are compressed, then plain
// descent: the compressing op keeps its own momentum.
// Source: Lin et al., "Deep gradient compression", 2018.
class dgc_momentum_kernel final : public kernel {
public:
  explicit dgc_momentum_kernel(const attribute_map& attributes)
    : begin_(std::trunc(attributes.get_float("rampup_begin_step", -1.0f))),
      momentum_(make_momentum(attributes, {})),
      descent_(make_sgd(attributes, {})) {}

  void run(kernel_context& ctx) override {
    if (begin_ < 0.0f)
      return;
    const float ranks = std::trunc(scalar_input(ctx, "nranks"));
    if (!(ranks > 1.0f))
      throw error(errc::invalid_argument,
                  "dgc_momentum needs more than one trainer");
    const bool early = std::trunc(scalar_input(ctx, "current_step")) < begin_;
    write_mean(ctx, ranks);
    (early ? momentum_ : descent_)->run(ctx);
  }

private:
  // The compressing op has multiplied the gradient by the number of trainers.
  static void write_mean(kernel_context& ctx, float ranks) {
    if (!ctx.has_output("Grad_out"))
      return;
    const tensor grad = float_input(ctx, "Grad");
    tensor out = float_output(ctx, "Grad_out", grad.dims());
    scale_add(out.data<float>(), grad.data<float>(), 1.0f / ranks, 0.0f,
              grad.numel());
  }

  float begin_;
  std::unique_ptr<kernel> momentum_;
  std::unique_ptr<kernel> descent_;
};

} // namespace

std::unique_ptr<kernel> make_momentum(const attribute_map& attributes,
                                      const kernel_options& options) {
  return std::make_unique<momentum_kernel>(attributes, options.factors);
}

std::unique_ptr<kernel> make_dgc_momentum(const attribute_map& attributes) {
  return std::make_unique<dgc_momentum_kernel>(attributes);
}

} // namespace troupe::cpu
