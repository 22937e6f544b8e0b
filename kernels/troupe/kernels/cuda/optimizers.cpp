// SPDX-License-Identifier: Apache-2.0
#include <troupe/base/error.hpp>
#include <troupe/kernels/arguments.hpp>
#include <troupe/kernels/cuda/cuda_stream.hpp>
#include <troupe/kernels/cuda/factories.hpp>

namespace troupe::cuda {

namespace {

/// A float32 input of one number, which stays on the GPU.
tensor number_on_gpu(const kernel_context& ctx, const char* slot) {
  auto value = float_input(ctx, slot);
  if (value.numel() != 1)
    throw_shape(slot, value.dims(), "expected one element");
  return value;
}

tensor input_like(const kernel_context& ctx, const char* slot,
                  const tensor& like) {
  auto value = float_input(ctx, slot);
  require_shape(slot, value.dims(), like.dims());
  return value;
}

class adam_kernel final : public kernel {
public:
  void run(kernel_context& ctx) override {
    const auto p = float_input(ctx, "Param");
    const auto g = input_like(ctx, "Grad", p);
    const auto m = input_like(ctx, "Moment1", p);
    const auto v = input_like(ctx, "Moment2", p);
    const auto rate = number_on_gpu(ctx, "LearningRate");
    const auto power1 = number_on_gpu(ctx, "Beta1Pow");
    const auto power2 = number_on_gpu(ctx, "Beta2Pow");
    const auto& a = ctx.attributes();
    const auto beta1 = a.get_float("beta1", 0.9f);
    const auto beta2 = a.get_float("beta2", 0.999f);
    auto p_out = float_output(ctx, "ParamOut", p.dims());
    auto m_out = float_output(ctx, "Moment1Out", p.dims());
    auto v_out = float_output(ctx, "Moment2Out", p.dims());
    auto& queue = stream_of(ctx.queue());
    queue.run_for_each<adam_update>(
      p.numel(),
      {p.data<float>(), g.data<float>(), m.data<float>(), v.data<float>(),
       rate.data<float>(), power1.data<float>(), power2.data<float>(),
       p_out.data<float>(), m_out.data<float>(), v_out.data<float>(), p.numel(),
       beta1, beta2, a.get_float("epsilon", 1e-8f)});
    const auto power_out = [&](const char* slot) -> float* {
      return ctx.has_output(slot)
               ? float_output(ctx, slot, shape{1}).data<float>()
               : nullptr;
    };
    auto* const power1_out = power_out("Beta1PowOut");
    auto* const power2_out = power_out("Beta2PowOut");
    if (power1_out || power2_out)
      queue.run<advance_powers>({1, 1},
                                {power1.data<float>(), power2.data<float>(),
                                 power1_out, power2_out, beta1, beta2});
  }
};

} // namespace

void run_sgd(kernel_context& ctx) {
  const auto p = float_input(ctx, "Param");
  const auto g = input_like(ctx, "Grad", p);
  const auto rate = number_on_gpu(ctx, "LearningRate");
  auto p_out = float_output(ctx, "ParamOut", p.dims());
  stream_of(ctx.queue())
    .run_for_each<sgd_update>(p.numel(), {p.data<float>(), g.data<float>(),
                                          rate.data<float>(),
                                          p_out.data<float>(), p.numel()});
}

// As Paddle's CPU kernel, this does not rescale dense gradients.
void run_momentum(kernel_context& ctx) {
  const auto p = float_input(ctx, "Param");
  const auto g = input_like(ctx, "Grad", p);
  const auto v = input_like(ctx, "Velocity", p);
  const auto rate = number_on_gpu(ctx, "LearningRate");
  const auto& a = ctx.attributes();
  const bool decays = a.get_string("regularization_method", "") == "l2_decay";
  auto p_out = float_output(ctx, "ParamOut", p.dims());
  auto v_out = float_output(ctx, "VelocityOut", p.dims());
  stream_of(ctx.queue())
    .run_for_each<momentum_update>(
      p.numel(), {p.data<float>(), g.data<float>(), v.data<float>(),
                  rate.data<float>(), p_out.data<float>(), v_out.data<float>(),
                  p.numel(), a.get_float("mu", 0),
                  decays ? a.get_float("regularization_coeff", 0) : 0,
                  a.get_bool("use_nesterov", false)});
}

std::unique_ptr<kernel> make_adam(const attribute_map&) {
  return std::make_unique<adam_kernel>();
}

} // namespace troupe::cuda
