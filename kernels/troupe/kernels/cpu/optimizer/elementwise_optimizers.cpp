// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/cpu/arguments.hpp>
#include <troupe/kernels/cpu/factories.hpp>
#include <troupe/kernels/cpu/optimizer/row_gradient.hpp>
#include <troupe/kernels/cpu/simd/simd.hpp>
#include <troupe/kernels/cpu/simd/vector_ops.hpp>

#include <array>
#include <cmath>

// Optimizers that treat each element on its own. Each is a loop, with its
// states and attributes. The other optimizers have files of their own.
namespace troupe::cpu {

namespace {

constexpr std::size_t max_states = 3;

// What the step reads and writes; outputs may be the inputs.
struct step_arrays {
  const float* p;
  std::array<const float*, max_states> s;
  float* p_out;
  std::array<float*, max_states> s_out;

  step_arrays from(std::int64_t offset) const {
    step_arrays moved = *this;
    moved.p += offset;
    moved.p_out += offset;
    for (std::size_t i = 0; i < max_states; ++i)
      if (s[i]) {
        moved.s[i] += offset;
        moved.s_out[i] += offset;
      }
    return moved;
  }
};

using constants = std::array<float, 4>;
using step_loop = void (*)(step_arrays a, const float* grad, float lr,
                           constants c, std::int64_t n);

// ------------------------------------------------------------------- loops

// Source: Duchi, Hazan and Singer, "Adaptive subgradient methods", 2011.
// c = epsilon
TROUPE_SIMD void adagrad_loop(step_arrays a, const float* grad, float lr,
                              constants c, std::int64_t n) {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) {
    const float g = grad[i];
    const float sum = a.s[0][i] + g * g;
    a.s_out[0][i] = sum;
    a.p_out[i] = a.p[i] - lr * g / (__builtin_sqrtf(sum) + c[0]);
  }
}

// c = epsilon, decay
TROUPE_SIMD void decayed_adagrad_loop(step_arrays a, const float* grad,
                                      float lr, constants c, std::int64_t n) {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) {
    const float g = grad[i];
    const float mean = c[1] * a.s[0][i] + (1.0f - c[1]) * g * g;
    a.s_out[0][i] = mean;
    a.p_out[i] = a.p[i] - lr * g / (__builtin_sqrtf(mean) + c[0]);
  }
}

// Source: Zeiler, "ADADELTA", 2012. The learning rate is Paddle's addition.
// c = epsilon, rho
TROUPE_SIMD void adadelta_loop(step_arrays a, const float* grad, float lr,
                               constants c, std::int64_t n) {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) {
    const float g = grad[i];
    const float squares = c[1] * a.s[0][i] + (1.0f - c[1]) * g * g;
    const float update =
      g * __builtin_sqrtf(a.s[1][i] + c[0]) / __builtin_sqrtf(squares + c[0]);
    a.s_out[0][i] = squares;
    a.s_out[1][i] = c[1] * a.s[1][i] + (1.0f - c[1]) * update * update;
    a.p_out[i] = a.p[i] - lr * update;
  }
}

// Source: Kingma and Ba, "Adam", 2015, section 7.1. lr is already corrected.
// c = epsilon, beta1, beta2
TROUPE_SIMD void adamax_loop(step_arrays a, const float* grad, float lr,
                             constants c, std::int64_t n) {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) {
    const float g = grad[i];
    const float size = g < 0.0f ? -g : g;
    const float kept = c[2] * a.s[1][i] + c[0];
    const float mean = c[1] * a.s[0][i] + (1.0f - c[1]) * g;
    const float norm = size < kept ? kept : size;
    a.s_out[0][i] = mean;
    a.s_out[1][i] = norm;
    a.p_out[i] = a.p[i] - lr * mean / norm;
  }
}

// Source: Tieleman and Hinton, "Lecture 6.5: rmsprop", 2012.
// c = epsilon, decay, momentum
TROUPE_SIMD void rmsprop_loop(step_arrays a, const float* grad, float lr,
                              constants c, std::int64_t n) {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) {
    const float g = grad[i];
    const float squares = c[1] * a.s[0][i] + (1.0f - c[1]) * g * g;
    const float step =
      c[2] * a.s[1][i] + lr * g / __builtin_sqrtf(squares + c[0]);
    a.s_out[0][i] = squares;
    a.s_out[1][i] = step;
    a.p_out[i] = a.p[i] - step;
  }
}

// Source: Graves, "Generating sequences with recurrent neural networks", 2013,
// equations 38 to 41.
TROUPE_SIMD void centered_rmsprop_loop(step_arrays a, const float* grad,
                                       float lr, constants c, std::int64_t n) {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) {
    const float g = grad[i];
    const float squares = c[1] * a.s[0][i] + (1.0f - c[1]) * g * g;
    const float mean = c[1] * a.s[2][i] + (1.0f - c[1]) * g;
    const float step =
      c[2] * a.s[1][i] + lr * g / __builtin_sqrtf(squares - mean * mean + c[0]);
    a.s_out[0][i] = squares;
    a.s_out[1][i] = step;
    a.s_out[2][i] = mean;
    a.p_out[i] = a.p[i] - step;
  }
}

// Source: McMahan et al., "Ad click prediction", 2013, algorithm 1.
// c = l1, l2; the power of the learning rate is -1/2
TROUPE_SIMD void ftrl_loop(step_arrays a, const float* grad, float lr,
                           constants c, std::int64_t n) {
  const float rate = 1.0f / lr;
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) {
    const float g = grad[i];
    const float squares = a.s[0][i] + g * g;
    const float root = __builtin_sqrtf(squares);
    const float linear =
      a.s[1][i] + g - (root - __builtin_sqrtf(a.s[0][i])) * rate * a.p[i];
    const float size = linear < 0.0f ? -linear : linear;
    const float shrunk = (linear < 0.0f ? -c[0] : c[0]) - linear;
    a.s_out[0][i] = squares;
    a.s_out[1][i] = linear;
    a.p_out[i] = size > c[0] ? shrunk / (root * rate + 2.0f * c[1]) : 0.0f;
  }
}

// c = l1, l2, power of the learning rate
void ftrl_power_loop(step_arrays a, const float* grad, float lr, constants c,
                     std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) {
    const float g = grad[i];
    const float squares = a.s[0][i] + g * g;
    const float power = std::pow(squares, -c[2]);
    const float linear =
      a.s[1][i] + g - (power - std::pow(a.s[0][i], -c[2])) / lr * a.p[i];
    const float shrunk = std::copysign(c[0], linear) - linear;
    a.s_out[0][i] = squares;
    a.s_out[1][i] = linear;
    a.p_out[i] =
      std::abs(linear) > c[0] ? shrunk / (power / lr + 2.0f * c[1]) : 0.0f;
  }
}

// ------------------------------------------------------------------- rules

struct state_slots {
  const char* in;
  const char* out;
};

struct step_rule {
  std::array<state_slots, max_states> states; // null: end of the list
  constants values;
  step_loop loop;
  bool corrected = false; // lr has the bias correction of Beta1Pow
  bool present = false;   // missing rows stay as they are
};

class elementwise_kernel final : public kernel {
public:
  explicit elementwise_kernel(const step_rule& rule) : rule_(rule) {}

  void run(kernel_context& ctx) override {
    const tensor p = float_input(ctx, "Param");
    grad_.read(ctx, p.dims());
    const float lr = learning_rate(ctx);
    const step_arrays arrays = arrays_of(ctx, p);
    const auto run = [&](std::int64_t at, const float* g, std::int64_t n) {
      rule_.loop(arrays.from(at), g, lr, rule_.values, n);
    };
    if (copies_first())
      copy_all(arrays, p.numel());
    if (rule_.present || grad_.empty())
      grad_.for_each_present(ctx, run);
    else
      grad_.for_each(ctx, run);
    grad_.clear();
    inputs_ = {};
  }

private:
  float learning_rate(const kernel_context& ctx) const {
    const float lr = scalar_input(ctx, "LearningRate");
    return rule_.corrected ? lr / (1.0f - scalar_input(ctx, "Beta1Pow")) : lr;
  }

  step_arrays arrays_of(kernel_context& ctx, const tensor& p) {
    step_arrays a{};
    a.p = p.data<float>();
    for (std::size_t i = 0; i < max_states && rule_.states[i].in; ++i) {
      const auto& slots = rule_.states[i];
      inputs_[i] = float_input(ctx, slots.in);
      require_shape(slots.in, inputs_[i].dims(), p.dims());
      a.s[i] = inputs_[i].data<float>();
    }
    a.p_out = float_output(ctx, "ParamOut", p.dims()).data<float>();
    for (std::size_t i = 0; i < max_states && rule_.states[i].in; ++i)
      a.s_out[i] =
        float_output(ctx, rule_.states[i].out, p.dims()).data<float>();
    return a;
  }

  // If outputs are apart from inputs, elements that the loop skips must be
  // copied.
  bool copies_first() const {
    return !grad_.is_dense() && (rule_.present || grad_.empty());
  }

  static void copy_all(const step_arrays& a, std::int64_t n) {
    copy(a.p_out, a.p, n);
    for (std::size_t i = 0; i < max_states && a.s[i]; ++i)
      copy(a.s_out[i], a.s[i], n);
  }

  step_rule rule_;
  row_gradient grad_;
  std::array<tensor, max_states> inputs_; // held while the loop runs
};

std::unique_ptr<kernel> make(const step_rule& rule) {
  return std::make_unique<elementwise_kernel>(rule);
}

} // namespace

std::unique_ptr<kernel> make_adagrad(const attribute_map& attributes) {
  return make({{{{"Moment", "MomentOut"}}},
               {attributes.get_float("epsilon", 1e-6f)},
               adagrad_loop});
}

std::unique_ptr<kernel> make_decayed_adagrad(const attribute_map& attributes) {
  return make({{{{"Moment", "MomentOut"}}},
               {attributes.get_float("epsilon", 1e-6f),
                attributes.get_float("decay", 0.95f)},
               decayed_adagrad_loop});
}

std::unique_ptr<kernel> make_adadelta(const attribute_map& attributes) {
  return make({{{{"AvgSquaredGrad", "AvgSquaredGradOut"},
                 {"AvgSquaredUpdate", "AvgSquaredUpdateOut"}}},
               {attributes.get_float("epsilon", 1e-6f),
                attributes.get_float("rho", 0.95f)},
               adadelta_loop});
}

std::unique_ptr<kernel> make_adamax(const attribute_map& attributes) {
  return make({{{{"Moment", "MomentOut"}, {"InfNorm", "InfNormOut"}}},
               {attributes.get_float("epsilon", 1e-8f),
                attributes.get_float("beta1", 0.9f),
                attributes.get_float("beta2", 0.999f)},
               adamax_loop,
               true});
}

std::unique_ptr<kernel> make_rmsprop(const attribute_map& attributes) {
  const bool centered = attributes.get_bool("centered", false);
  step_rule rule{{{{"MeanSquare", "MeanSquareOut"}, {"Moment", "MomentOut"}}},
                 {attributes.get_float("epsilon", 1e-10f),
                  attributes.get_float("decay", 0.9f),
                  attributes.get_float("momentum", 0)},
                 centered ? centered_rmsprop_loop : rmsprop_loop};
  if (centered)
    rule.states[2] = {"MeanGrad", "MeanGradOut"};
  return make(rule);
}

std::unique_ptr<kernel> make_ftrl(const attribute_map& attributes) {
  // Paddle adds this to both l1 and l2, so that nothing is divided by zero.
  constexpr float tiny = 1e-10f;
  const float power = attributes.get_float("lr_power", -0.5f);
  return make({{{{"SquaredAccumulator", "SquaredAccumOut"},
                 {"LinearAccumulator", "LinearAccumOut"}}},
               {attributes.get_float("l1", 0.0f) + tiny,
                attributes.get_float("l2", 0.0f) + tiny, power},
               power == -0.5f ? ftrl_loop : ftrl_power_loop,
               false,
               true});
}

} // namespace troupe::cpu
