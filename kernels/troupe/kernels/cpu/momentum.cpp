// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/cpu/arguments.hpp>
#include <troupe/kernels/cpu/factories.hpp>
#include <troupe/kernels/cpu/row_gradient.hpp>
#include <troupe/kernels/cpu/simd.hpp>

namespace troupe::cpu {

namespace {

struct momentum_factors {
  float lr = 0.0f;
  float mu = 0.0f;
  float rescale = 1.0f;
  float decay = 0.0f;
};

// Where the step writes and what it reads; outputs may be the inputs.
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
  explicit momentum_kernel(const attribute_map& attributes)
    : nesterov_(attributes.get_bool("use_nesterov", false)) {
    factors_.mu = attributes.get_float("mu", 0.0f);
    factors_.rescale = attributes.get_float("rescale_grad", 1.0f);
    if (attributes.get_string("regularization_method", "") == "l2_decay")
      factors_.decay = attributes.get_float("regularization_coeff", 0.0f);
  }

  void run(kernel_context& ctx) override {
    const tensor p = float_input(ctx, "Param");
    const tensor v = float_input(ctx, "Velocity");
    require_shape("Velocity", v.dims(), p.dims());
    factors_.lr = scalar_input(ctx, "LearningRate");
    grad_.read(ctx, p.dims());
    tensor p_out = float_output(ctx, "ParamOut", p.dims());
    tensor v_out = float_output(ctx, "VelocityOut", p.dims());
    const auto loop = nesterov_ ? nesterov_loop : momentum_loop;
    grad_.for_each([&](std::int64_t at, const float* g, std::int64_t n) {
      loop({p_out.data<float>() + at, v_out.data<float>() + at,
            p.data<float>() + at, v.data<float>() + at},
           g, factors_, n);
    });
    grad_.clear();
  }

private:
  bool nesterov_;
  momentum_factors factors_;
  row_gradient grad_;
};

} // namespace

std::unique_ptr<kernel> make_momentum(const attribute_map& attributes) {
  return std::make_unique<momentum_kernel>(attributes);
}

} // namespace troupe::cpu
