// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/cpu/arguments.hpp>
#include <troupe/kernels/cpu/factories.hpp>
#include <troupe/kernels/cpu/rnn/gru_cell.hpp>
#include <troupe/kernels/cpu/simd/vector_ops.hpp>

#include <string>

namespace troupe::cpu {

namespace {

/// One step: Input [batch, 3d], HiddenPrev [batch, d], Weight [d, 3d].
struct gru_step {
  tensor input, before, weights;
  gru_cell cell;

  explicit gru_step(const kernel_context& ctx)
    : input(float_input(ctx, "Input")), before(float_input(ctx, "HiddenPrev")),
      weights(float_input(ctx, "Weight")),
      cell{.gate = find_gate_activation(
             ctx.attributes().get_int("gate_activation", 1)),
           .candidate =
             find_gate_activation(ctx.attributes().get_int("activation", 2))} {
    require_rank("HiddenPrev", before.dims(), 2);
    const auto d = before.dims()[1];
    require_shape("Input", input.dims(), {before.dims()[0], 3 * d});
    require_shape("Weight", weights.dims(), {d, 3 * d});
    cell.origin_mode = ctx.attributes().get_bool("origin_mode", false);
    cell.hidden = d;
    cell.weights = weights.data<float>();
  }

  std::int64_t rows() const { return before.dims()[0]; }
};

} // namespace

void run_gru_unit(kernel_context& ctx) {
  const gru_step step(ctx);
  const auto width = 3 * step.cell.hidden;
  tensor gates = float_output(ctx, "Gate", step.input.dims());
  tensor reset = float_output(ctx, "ResetHiddenPrev", step.before.dims());
  tensor h = float_output(ctx, "Hidden", step.before.dims());
  copy(gates.data<float>(), step.input.data<float>(), gates.numel());
  if (ctx.has_input("Bias")) {
    const tensor bias = float_input(ctx, "Bias");
    if (bias.numel() != width)
      throw_shape("Bias", bias.dims(),
                  "expected [1, " + std::to_string(width) + "]");
    for (std::int64_t i = 0; i < step.rows(); ++i)
      accumulate(gates.data<float>() + i * width, bias.data<float>(), 1.0f,
                 width);
  }
  step.cell.forward(step.rows(), gates.data<float>(), step.before.data<float>(),
                    reset.data<float>(), h.data<float>());
}

void run_gru_unit_grad(kernel_context& ctx) {
  const gru_step step(ctx);
  const auto d = step.cell.hidden;
  const tensor gates = float_input(ctx, "Gate");
  const tensor reset = float_input(ctx, "ResetHiddenPrev");
  const tensor dh = float_input(ctx, "Hidden@GRAD");
  require_shape("Gate", gates.dims(), step.input.dims());
  require_shape("ResetHiddenPrev", reset.dims(), step.before.dims());
  require_shape("Hidden@GRAD", dh.dims(), step.before.dims());
  const auto wanted = [&](std::string_view slot, const shape& dims) {
    tensor value;
    if (ctx.has_output(slot)) {
      value = float_output(ctx, slot, dims);
      fill(value.data<float>(), value.numel(), 0.0f);
    }
    return value;
  };
  const auto data = [](tensor& t) { return t ? t.data<float>() : nullptr; };
  tensor dbefore = wanted("HiddenPrev@GRAD", step.before.dims());
  tensor dweights = wanted("Weight@GRAD", step.weights.dims());
  tensor dgates = wanted("Input@GRAD", step.input.dims());
  if (!dgates)
    dgates = ctx.scratch(step.input.numel());
  tensor scratch = ctx.scratch(step.before.numel());
  step.cell.backward(step.rows(), gates.data<float>(),
                     step.before.data<float>(), reset.data<float>(),
                     dh.data<float>(), dgates.data<float>(), data(dbefore),
                     data(dweights), scratch.data<float>());
  if (ctx.has_output("Bias@GRAD")) {
    tensor dbias = float_output(ctx, "Bias@GRAD", {1, 3 * d});
    sum_rows(dbias.data<float>(), dgates.data<float>(), step.rows(), 3 * d);
  }
}

} // namespace troupe::cpu
