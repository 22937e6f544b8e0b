// SPDX-License-Identifier: Apache-2.0
// The op lstm: an LSTM over sequences of different length, with peepholes.
#include <troupe/kernels/cpu/arguments.hpp>
#include <troupe/kernels/cpu/factories.hpp>
#include <troupe/kernels/cpu/product/gemm.hpp>
#include <troupe/kernels/cpu/rnn/gate_activation.hpp>
#include <troupe/kernels/cpu/sequence/sequence_batches.hpp>
#include <troupe/kernels/cpu/sequence/sequences.hpp>
#include <troupe/kernels/cpu/simd/vector_ops.hpp>

#include <utility>
#include <vector>

namespace troupe::cpu {

namespace {

/// The order of gates in a row: candidate, input, forget, output.
enum gate : std::int64_t { candidate, input_gate, forget, output_gate };

/// Input [rows, 4d] of sequences, Weight [d, 4d], Bias [1, 4d], with peepholes
/// [1, 7d], H0 and C0 [sequences, d]. BatchGate and BatchCellPreAct (the
/// activated cell state) are ordered by time.
struct lstm_arguments {
  tensor input, weights, bias, h0, c0;
  sequence_batches batches;
  const gate_activation& act_gate;
  const gate_activation& act_cell;
  const gate_activation& act_candidate;
  std::int64_t d = 0;
  bool peepholes = false;

  explicit lstm_arguments(const kernel_context& ctx)
    : input(float_input(ctx, "Input")), weights(float_input(ctx, "Weight")),
      batches(require_levels(input, "Input").front(),
              ctx.attributes().get_bool("is_reverse", false)),
      act_gate(activation(ctx, "gate_activation", "sigmoid")),
      act_cell(activation(ctx, "cell_activation", "tanh")),
      act_candidate(activation(ctx, "candidate_activation", "tanh")) {
    require_rank("Weight", weights.dims(), 2);
    d = weights.dims()[0];
    require_shape("Weight", weights.dims(), {d, 4 * d});
    require_shape("Input", input.dims(), {input.dims()[0], 4 * d});
    read_bias(ctx);
    h0 = read_start(ctx, "H0");
    c0 = read_start(ctx, "C0");
  }

  shape rows_of(std::int64_t width) const { return {input.dims()[0], width}; }

  /// The peephole weights of a gate; null without peepholes.
  const float* peephole(gate g) const {
    return peepholes ? bias.data<float>() + (4 + g - input_gate) * d : nullptr;
  }

  /// A state before a step: rows of the previous step, or the first state.
  const float* before(const tensor& states, const tensor& first,
                      std::int64_t step) const {
    if (step > 0)
      return states.data<float>() + batches.start(step - 1) * d;
    return first ? first.data<float>() : nullptr;
  }

private:
  static const gate_activation& activation(const kernel_context& ctx,
                                           std::string_view name,
                                           std::string_view otherwise) {
    return find_gate_activation(ctx.attributes().get_string(name, otherwise));
  }

  void read_bias(const kernel_context& ctx) {
    peepholes =
      ctx.attributes().get_bool("use_peepholes", true) && ctx.has_input("Bias");
    if (!ctx.has_input("Bias"))
      return;
    bias = float_input(ctx, "Bias");
    if (bias.numel() != (peepholes ? 7 : 4) * d)
      throw_shape("Bias", bias.dims(),
                  "expected 4 values a unit, 7 with peepholes");
  }

  tensor read_start(const kernel_context& ctx, std::string_view slot) const {
    if (!ctx.has_input(slot))
      return {};
    const tensor given = float_input(ctx, slot);
    const shape dims{batches.num_sequences(), d};
    require_shape(slot, given.dims(), dims);
    auto ordered = tensor::make(ctx.on().memory(), dims, dtype::float32);
    batches.gather_sequences(ordered.data<float>(), given.data<float>(), d);
    return ordered;
  }
};

/// out += x * weights, unless x or weights is null.
void add_weighed(float* out, const float* x, const float* weights,
                 std::int64_t n) {
  if (x && weights)
    for (std::int64_t j = 0; j < n; ++j)
      out[j] += x[j] * weights[j];
}

void forward_row(const lstm_arguments& a, float* gates, const float* before,
                 float* cell, float* active, float* h) {
  const auto d = a.d;
  float* in = gates + candidate * d;
  float* i = gates + input_gate * d;
  float* f = gates + forget * d;
  float* o = gates + output_gate * d;
  a.act_candidate.apply(in, d);
  add_weighed(i, before, a.peephole(input_gate), d);
  add_weighed(f, before, a.peephole(forget), d);
  a.act_gate.apply(i, 2 * d);
  multiply(cell, in, i, d);
  add_weighed(cell, before, f, d);
  add_weighed(o, cell, a.peephole(output_gate), d);
  a.act_gate.apply(o, d);
  copy(active, cell, d);
  a.act_cell.apply(active, d);
  multiply(h, o, active, d);
}

void forward_step(const lstm_arguments& a, std::int64_t step, tensor& gates,
                  tensor& cells, tensor& active, tensor& hidden) {
  const auto d = a.d;
  const auto at = a.batches.start(step);
  const auto rows = a.batches.size(step);
  if (const float* h = a.before(hidden, a.h0, step))
    gemm(rows, 4 * d, d, {h, d}, {a.weights.data<float>(), 4 * d}, 1.0f,
         gates.data<float>() + at * 4 * d, 4 * d);
  const float* before = a.before(cells, a.c0, step);
  for (std::int64_t i = 0; i < rows; ++i)
    forward_row(
      a, gates.data<float>() + (at + i) * 4 * d,
      before ? before + i * d : nullptr, cells.data<float>() + (at + i) * d,
      active.data<float>() + (at + i) * d, hidden.data<float>() + (at + i) * d);
}

void scatter_output(kernel_context& ctx, const lstm_arguments& a,
                    std::string_view slot, const tensor& by_time,
                    std::int64_t width) {
  if (!ctx.has_output(slot))
    return;
  tensor out = float_output(ctx, slot, a.rows_of(width));
  a.batches.scatter(out.data<float>(), by_time.data<float>(), width);
  if (slot != "Input@GRAD") // as in Paddle
    ctx.output_variable(slot).as_tensor().set_levels(a.input.levels());
}

/// What the backward pass carries through the steps, ordered by time.
struct lstm_gradient {
  tensor gates, cells, active, hidden; ///< of the forward pass
  tensor dh, dc, dgates;
  tensor dh0, dc0; ///< longest sequences first
  tensor dweights, dbias;
};

void backward_row(const lstm_arguments& a, lstm_gradient& g, std::int64_t row,
                  const float* before, float* dbefore) {
  const auto d = a.d;
  const float* gates = g.gates.data<float>() + row * 4 * d;
  const float* cell = g.cells.data<float>() + row * d;
  const float* active = g.active.data<float>() + row * d;
  const float* dh = g.dh.data<float>() + row * d;
  float* dc = g.dc.data<float>() + row * d;
  float* dgates = g.dgates.data<float>() + row * 4 * d;
  float* din = dgates + candidate * d;
  float* di = dgates + input_gate * d;
  float* df = dgates + forget * d;
  float* dout = dgates + output_gate * d;
  multiply(dout, dh, active, d);
  a.act_gate.derive(dout, gates + output_gate * d, d);
  // for now the gradient of the active cell
  multiply(din, dh, gates + output_gate * d, d);
  a.act_cell.derive(din, active, d);
  accumulate(dc, din, 1.0f, d);
  add_weighed(dc, dout, a.peephole(output_gate), d);
  multiply(din, dc, gates + input_gate * d, d);
  a.act_candidate.derive(din, gates + candidate * d, d);
  multiply(di, dc, gates + candidate * d, d);
  if (before)
    multiply(df, dc, before, d);
  else
    fill(df, d, 0.0f);
  a.act_gate.derive(di, gates + input_gate * d, 2 * d);
  add_weighed(dbefore, dc, gates + forget * d, d);
  add_weighed(dbefore, di, a.peephole(input_gate), d);
  add_weighed(dbefore, df, a.peephole(forget), d);
  if (!g.dbias || !a.peepholes)
    return;
  float* dpeephole = g.dbias.data<float>() + 4 * d;
  add_weighed(dpeephole, di, before, d);
  add_weighed(dpeephole + d, df, before, d);
  add_weighed(dpeephole + 2 * d, dout, cell, d);
}

void backward_step(const lstm_arguments& a, lstm_gradient& g,
                   std::int64_t step) {
  const auto d = a.d;
  const auto at = a.batches.start(step);
  const auto rows = a.batches.size(step);
  const auto behind = step > 0 ? a.batches.start(step - 1) * d : 0;
  float* dh = (step > 0 ? g.dh : g.dh0).data<float>() + behind;
  float* dc = (step > 0 ? g.dc : g.dc0).data<float>() + behind;
  const float* before = a.before(g.cells, a.c0, step);
  for (std::int64_t i = 0; i < rows; ++i)
    backward_row(a, g, at + i, before ? before + i * d : nullptr, dc + i * d);
  const float* dgates = g.dgates.data<float>() + at * 4 * d;
  gemm(rows, d, 4 * d, {dgates, 4 * d}, {a.weights.data<float>(), 4 * d, true},
       1.0f, dh, d);
  const float* h = a.before(g.hidden, a.h0, step);
  if (h && g.dweights)
    gemm(d, 4 * d, rows, {h, d, true}, {dgates, 4 * d}, 1.0f,
         g.dweights.data<float>(), 4 * d);
}

tensor zeros(tensor value) {
  fill(value.data<float>(), value.numel(), 0.0f);
  return value;
}

lstm_gradient read_gradient(kernel_context& ctx, const lstm_arguments& a) {
  const auto d = a.d;
  const auto rows = a.input.dims()[0];
  const auto sequences = a.batches.num_sequences();
  const auto read = [&](std::string_view slot, std::int64_t width) {
    const tensor value = float_input(ctx, slot);
    require_shape(slot, value.dims(), a.rows_of(width));
    return value;
  };
  const auto by_time = [&](std::string_view slot) {
    const tensor value = read(slot, d);
    tensor ordered = ctx.scratch(rows * d);
    a.batches.gather(ordered.data<float>(), value.data<float>(), d);
    return ordered;
  };
  lstm_gradient g;
  g.gates = read("BatchGate", 4 * d);
  g.active = read("BatchCellPreAct", d);
  g.cells = by_time("Cell");
  g.hidden = by_time("Hidden");
  g.dh = by_time("Hidden@GRAD");
  g.dc = zeros(ctx.scratch(rows * d));
  g.dgates = ctx.scratch(rows * 4 * d);
  g.dh0 = zeros(ctx.scratch(sequences * d));
  g.dc0 = zeros(ctx.scratch(sequences * d));
  if (ctx.has_output("Weight@GRAD"))
    g.dweights = zeros(float_output(ctx, "Weight@GRAD", a.weights.dims()));
  if (a.bias && ctx.has_output("Bias@GRAD"))
    g.dbias = zeros(float_output(ctx, "Bias@GRAD", a.bias.dims()));
  return g;
}

} // namespace

void run_lstm(kernel_context& ctx) {
  const lstm_arguments a(ctx);
  tensor gates = float_output(ctx, "BatchGate", a.rows_of(4 * a.d));
  tensor active = float_output(ctx, "BatchCellPreAct", a.rows_of(a.d));
  tensor cells = ctx.scratch(active.numel());
  tensor hidden = ctx.scratch(active.numel());
  a.batches.gather(gates.data<float>(), a.input.data<float>(), 4 * a.d);
  if (a.bias)
    for (std::int64_t i = 0; i < a.input.dims()[0]; ++i)
      accumulate(gates.data<float>() + i * 4 * a.d, a.bias.data<float>(), 1.0f,
                 4 * a.d);
  for (std::int64_t step = 0; step < a.batches.steps(); ++step)
    forward_step(a, step, gates, cells, active, hidden);
  scatter_output(ctx, a, "Hidden", hidden, a.d);
  scatter_output(ctx, a, "Cell", cells, a.d);
}

// As in Paddle, a gradient of output Cell is ignored.
void run_lstm_grad(kernel_context& ctx) {
  const lstm_arguments a(ctx);
  auto g = read_gradient(ctx, a);
  for (std::int64_t step = a.batches.steps() - 1; step >= 0; --step)
    backward_step(a, g, step);
  scatter_output(ctx, a, "Input@GRAD", g.dgates, 4 * a.d);
  if (g.dbias)
    sum_rows(g.dbias.data<float>(), g.dgates.data<float>(), a.input.dims()[0],
             4 * a.d);
  for (auto [slot, from] : {std::pair{"H0@GRAD", &g.dh0}, {"C0@GRAD", &g.dc0}})
    if (ctx.has_output(slot)) {
      tensor to = float_output(ctx, slot, {a.batches.num_sequences(), a.d});
      a.batches.scatter_sequences(to.data<float>(), from->data<float>(), a.d);
    }
}

} // namespace troupe::cpu
