// SPDX-License-Identifier: Apache-2.0
#include <troupe/base/error.hpp>
#include <troupe/kernels/arguments.hpp>
#include <troupe/kernels/cuda/factories.hpp>
#include <troupe/kernels/cuda/queue_parts.hpp>
#include <troupe/kernels/cuda/row_sparse.hpp>

#include <initializer_list>

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

/// A tensor that an update reads and writes.
struct updated_tensor {
  updated_tensor(kernel_context& ctx, const char* slot, const char* out_slot,
                 const shape& dims)
    : in(float_input(ctx, slot)) {
    require_shape(slot, in.dims(), dims);
    out = float_output(ctx, out_slot, dims);
  }
  void stand_still(cuda_stream& queue) { queue_copy(queue, in, out); }

  tensor in, out;
};

/// An update that leaves out what the gradient lacks has to find it in the
/// outputs.
void stand_still(cuda_stream& queue,
                 std::initializer_list<updated_tensor*> all) {
  for (auto* each : all)
    each->stand_still(queue);
}

dense_gradient dense_input(const kernel_context& ctx, const tensor& like) {
  return {input_like(ctx, "Grad", like).data<float>(), like.numel()};
}

/// Null if the gradient is dense.
const selected_rows* row_input(const kernel_context& ctx) {
  const auto& grad = ctx.input_variable("Grad");
  return grad.is_rows() ? &grad.as_rows() : nullptr;
}

// -- adam ---------------------------------------------------------------------

/// What an update by adam needs besides the gradient.
struct adam_call {
  explicit adam_call(kernel_context& ctx)
    : p(ctx, "Param", "ParamOut", ctx.input("Param").dims()),
      m(ctx, "Moment1", "Moment1Out", p.in.dims()),
      v(ctx, "Moment2", "Moment2Out", p.in.dims()),
      rate(number_on_gpu(ctx, "LearningRate")),
      power1(number_on_gpu(ctx, "Beta1Pow")),
      power2(number_on_gpu(ctx, "Beta2Pow")),
      beta1(ctx.attributes().get_float("beta1", 0.9f)),
      beta2(ctx.attributes().get_float("beta2", 0.999f)),
      epsilon(ctx.attributes().get_float("epsilon", 1e-8f)) {}

  template <class Gradient>
  void queue_update(cuda_stream& queue, const Gradient& gradient, float ahead1,
                    float ahead2) {
    queue.run_for_each<adam_update<Gradient>>(
      gradient.count,
      {gradient, p.in.data<float>(), m.in.data<float>(), v.in.data<float>(),
       rate.data<float>(), power1.data<float>(), power2.data<float>(),
       p.out.data<float>(), m.out.data<float>(), v.out.data<float>(), beta1,
       beta2, epsilon, ahead1, ahead2});
  }

  updated_tensor p, m, v;
  tensor rate, power1, power2;
  float beta1, beta2, epsilon;
};

void advance(kernel_context& ctx, const adam_call& call, float beta1,
             float beta2) {
  const auto power_out = [&](const char* slot) -> float* {
    return ctx.has_output(slot)
             ? float_output(ctx, slot, shape{1}).data<float>()
             : nullptr;
  };
  auto* const power1_out = power_out("Beta1PowOut");
  auto* const power2_out = power_out("Beta2PowOut");
  if (power1_out || power2_out)
    stream_of(ctx.queue())
      .run<advance_powers>({1, 1}, {call.power1.data<float>(),
                                    call.power2.data<float>(), power1_out,
                                    power2_out, beta1, beta2});
}

bool is_in_place(const kernel_context& ctx, const char* slot,
                 const char* out_slot) {
  return ctx.has_output(out_slot)
         && &ctx.input_variable(slot) == &ctx.output_variable(out_slot);
}

// As Paddle's CPU kernel for rows does, this reads powers that are updated in
// place as they are after the step.
void update_by_rows(kernel_context& ctx, adam_call& call,
                    const selected_rows& grad) {
  auto& queue = stream_of(ctx.queue());
  const auto ahead1 =
    is_in_place(ctx, "Beta1Pow", "Beta1PowOut") ? call.beta1 : 1.0f;
  const auto ahead2 =
    is_in_place(ctx, "Beta2Pow", "Beta2PowOut") ? call.beta2 : 1.0f;
  linked_rows rows{ctx, "Grad", grad, call.p.in.dims()};
  if (!ctx.attributes().get_bool("lazy_mode", false))
    return call.queue_update(queue, rows.all(ctx), ahead1, ahead2);
  stand_still(queue, {&call.p, &call.m, &call.v});
  call.queue_update(queue, rows.present(), ahead1, ahead2);
}

} // namespace

// As in Paddle, a row-sparse gradient without entries is no step.
void run_adam(kernel_context& ctx) {
  adam_call call{ctx};
  auto& queue = stream_of(ctx.queue());
  const auto* const rows = row_input(ctx);
  if (rows && entries_of(*rows) == 0) {
    stand_still(queue, {&call.p, &call.m, &call.v});
    return advance(ctx, call, 1, 1);
  }
  if (rows)
    update_by_rows(ctx, call, *rows);
  else
    call.queue_update(queue, dense_input(ctx, call.p.in), 1, 1);
  advance(ctx, call, call.beta1, call.beta2);
}

void run_sgd(kernel_context& ctx) {
  updated_tensor p{ctx, "Param", "ParamOut", ctx.input("Param").dims()};
  const auto rate = number_on_gpu(ctx, "LearningRate");
  auto& queue = stream_of(ctx.queue());
  const auto update = [&]<class Gradient>(const Gradient& gradient) {
    queue.run_for_each<sgd_update<Gradient>>(
      gradient.count,
      {gradient, p.in.data<float>(), rate.data<float>(), p.out.data<float>()});
  };
  const auto* const rows = row_input(ctx);
  if (!rows)
    return update(dense_input(ctx, p.in));
  const linked_rows links{ctx, "Grad", *rows, p.in.dims()};
  p.stand_still(queue);
  update(links.present());
}

// As Paddle's CPU kernel, this rescales only gradients that are rows, and
// stands still if there are none.
void run_momentum(kernel_context& ctx) {
  updated_tensor p{ctx, "Param", "ParamOut", ctx.input("Param").dims()};
  updated_tensor v{ctx, "Velocity", "VelocityOut", p.in.dims()};
  const auto rate = number_on_gpu(ctx, "LearningRate");
  const auto& a = ctx.attributes();
  const bool decays = a.get_string("regularization_method", "") == "l2_decay";
  auto& queue = stream_of(ctx.queue());
  const auto update = [&]<class Gradient>(const Gradient& gradient,
                                          float rescale) {
    queue.run_for_each<momentum_update<Gradient>>(
      gradient.count,
      {gradient, p.in.data<float>(), v.in.data<float>(), rate.data<float>(),
       p.out.data<float>(), v.out.data<float>(), a.get_float("mu", 0), rescale,
       decays ? a.get_float("regularization_coeff", 0) : 0,
       a.get_bool("use_nesterov", false)});
  };
  const auto* const rows = row_input(ctx);
  if (!rows)
    return update(dense_input(ctx, p.in), 1);
  linked_rows links{ctx, "Grad", *rows, p.in.dims()};
  if (entries_of(*rows) == 0)
    return stand_still(queue, {&p, &v});
  update(links.all(ctx), a.get_float("rescale_grad", 1));
}

} // namespace troupe::cuda
