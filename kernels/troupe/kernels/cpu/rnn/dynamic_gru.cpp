// SPDX-License-Identifier: Apache-2.0
// The op gru: a GRU over sequences of different length.
#include <troupe/kernels/cpu/arguments.hpp>
#include <troupe/kernels/cpu/factories.hpp>
#include <troupe/kernels/cpu/rnn/gru_cell.hpp>
#include <troupe/kernels/cpu/sequence/sequence_batches.hpp>
#include <troupe/kernels/cpu/sequence/sequences.hpp>
#include <troupe/kernels/cpu/simd/vector_ops.hpp>

namespace troupe::cpu {

namespace {

/// Input [rows, 3d] of sequences, Weight [d, 3d], Bias [1, 3d], H0 [sequences,
/// d]. BatchGate, BatchResetHiddenPrev and BatchHidden are ordered by time.
struct gru_arguments {
  tensor input, weights, h0;
  sequence_batches batches;
  gru_cell cell;

  explicit gru_arguments(const kernel_context& ctx)
    : input(float_input(ctx, "Input")), weights(float_input(ctx, "Weight")),
      batches(require_levels(input, "Input").front(),
              ctx.attributes().get_bool("is_reverse", false)),
      cell{.gate = find_gate_activation(
             ctx.attributes().get_string("gate_activation", "sigmoid")),
           .candidate = find_gate_activation(
             ctx.attributes().get_string("activation", "tanh"))} {
    require_rank("Weight", weights.dims(), 2);
    const auto d = weights.dims()[0];
    require_shape("Weight", weights.dims(), {d, 3 * d});
    require_shape("Input", input.dims(), {input.dims()[0], 3 * d});
    cell.origin_mode = ctx.attributes().get_bool("origin_mode", false);
    cell.hidden = d;
    cell.weights = weights.data<float>();
    read_start(ctx);
  }

  shape rows_of(std::int64_t width) const { return {input.dims()[0], width}; }

  /// The state before a step: rows of the previous step, or H0.
  const float* before(const tensor& hidden, std::int64_t step) const {
    if (step == 0)
      return h0 ? h0.data<float>() : nullptr;
    return hidden.data<float>() + batches.start(step - 1) * cell.hidden;
  }

private:
  /// Reads H0, with the longest sequences first.
  void read_start(const kernel_context& ctx) {
    if (!ctx.has_input("H0"))
      return;
    const tensor given = float_input(ctx, "H0");
    const shape dims{batches.num_sequences(), cell.hidden};
    require_shape("H0", given.dims(), dims);
    h0 = tensor::make(ctx.on().memory(), dims, dtype::float32);
    batches.gather_sequences(h0.data<float>(), given.data<float>(),
                             cell.hidden);
  }
};

void add_bias(const kernel_context& ctx, tensor& gates) {
  if (!ctx.has_input("Bias"))
    return;
  const tensor bias = float_input(ctx, "Bias");
  const auto width = gates.dims()[1];
  if (bias.numel() != width)
    throw_shape("Bias", bias.dims(), "expected a value per gate");
  for (std::int64_t i = 0; i < gates.dims()[0]; ++i)
    accumulate(gates.data<float>() + i * width, bias.data<float>(), 1.0f,
               width);
}

/// What the backward pass carries through the steps, ordered by time.
struct gru_gradient {
  tensor gates, reset, hidden; ///< of the forward pass
  tensor dh, dgates, scratch;
  tensor dstart; ///< of H0, longest sequences first
  tensor dweights;

  gru_gradient(kernel_context& ctx, const gru_arguments& a) {
    const auto d = a.cell.hidden;
    const auto read = [&](std::string_view slot, std::int64_t width) {
      const tensor value = float_input(ctx, slot);
      require_shape(slot, value.dims(), a.rows_of(width));
      return value;
    };
    gates = read("BatchGate", 3 * d);
    reset = read("BatchResetHiddenPrev", d);
    hidden = read("BatchHidden", d);
    dh = ctx.scratch(hidden.numel());
    a.batches.gather(dh.data<float>(), read("Hidden@GRAD", d).data<float>(), d);
    dgates = ctx.scratch(gates.numel());
    scratch = ctx.scratch(hidden.numel());
    dstart = ctx.scratch(a.batches.num_sequences() * d);
    fill(dstart.data<float>(), dstart.numel(), 0.0f);
    if (!ctx.has_output("Weight@GRAD"))
      return;
    dweights = float_output(ctx, "Weight@GRAD", a.weights.dims());
    fill(dweights.data<float>(), dweights.numel(), 0.0f);
  }

  void step(const gru_arguments& a, std::int64_t number) {
    const auto d = a.cell.hidden;
    const auto at = a.batches.start(number);
    float* dbefore = number > 0
                       ? dh.data<float>() + a.batches.start(number - 1) * d
                       : dstart.data<float>();
    a.cell.backward(
      a.batches.size(number), gates.data<float>() + at * 3 * d,
      a.before(hidden, number), reset.data<float>() + at * d,
      dh.data<float>() + at * d, dgates.data<float>() + at * 3 * d, dbefore,
      dweights ? dweights.data<float>() : nullptr, scratch.data<float>());
  }
};

} // namespace

void run_gru(kernel_context& ctx) {
  const gru_arguments a(ctx);
  const auto d = a.cell.hidden;
  tensor gates = float_output(ctx, "BatchGate", a.rows_of(3 * d));
  tensor reset = float_output(ctx, "BatchResetHiddenPrev", a.rows_of(d));
  tensor hidden = float_output(ctx, "BatchHidden", a.rows_of(d));
  a.batches.gather(gates.data<float>(), a.input.data<float>(), 3 * d);
  add_bias(ctx, gates);
  for (std::int64_t step = 0; step < a.batches.steps(); ++step) {
    const auto at = a.batches.start(step);
    a.cell.forward(a.batches.size(step), gates.data<float>() + at * 3 * d,
                   a.before(hidden, step), reset.data<float>() + at * d,
                   hidden.data<float>() + at * d);
  }
  tensor out = float_output(ctx, "Hidden", a.rows_of(d));
  a.batches.scatter(out.data<float>(), hidden.data<float>(), d);
  ctx.output_variable("Hidden").as_tensor().set_levels(a.input.levels());
}

void run_gru_grad(kernel_context& ctx) {
  const gru_arguments a(ctx);
  const auto d = a.cell.hidden;
  const auto rows = a.input.dims()[0];
  gru_gradient g(ctx, a);
  for (std::int64_t step = a.batches.steps() - 1; step >= 0; --step)
    g.step(a, step);
  if (ctx.has_output("Input@GRAD")) {
    tensor dx = float_output(ctx, "Input@GRAD", a.input.dims());
    a.batches.scatter(dx.data<float>(), g.dgates.data<float>(), 3 * d);
  }
  if (ctx.has_output("H0@GRAD")) {
    tensor dh0 = float_output(ctx, "H0@GRAD", {a.batches.num_sequences(), d});
    a.batches.scatter_sequences(dh0.data<float>(), g.dstart.data<float>(), d);
  }
  if (ctx.has_output("Bias@GRAD")) {
    tensor dbias = float_output(ctx, "Bias@GRAD", {1, 3 * d});
    sum_rows(dbias.data<float>(), g.dgates.data<float>(), rows, 3 * d);
  }
}

} // namespace troupe::cpu
