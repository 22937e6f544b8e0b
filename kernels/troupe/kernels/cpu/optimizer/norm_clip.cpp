// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/cpu/arguments.hpp>
#include <troupe/kernels/cpu/factories.hpp>
#include <troupe/kernels/cpu/optimizer/merged_rows.hpp>
#include <troupe/kernels/cpu/simd/vector_ops.hpp>

#include <cmath>

// Gradient clipping by norm, and access to the values of row gradients for it.
namespace troupe::cpu {

namespace {

// The factor that reduces a norm to at most `max_norm`; `squares` is the norm's
// square.
float shrinking(double squares, float max_norm) {
  const float norm = static_cast<float>(std::sqrt(squares));
  return norm > max_norm ? max_norm / norm : 1.0f;
}

void shrink(float* out, const tensor& x, float max_norm) {
  const double squares = sum_squares(x.data<float>(), x.numel());
  scale_add(out, x.data<float>(), shrinking(squares, max_norm), 0.0f,
            x.numel());
}

void clip_to(kernel_context& ctx, float max_norm) {
  if (ctx.input_variable("X").is_rows()) {
    auto rows =
      merge_rows("X", ctx.input_variable("X").as_rows(), ctx.on().memory());
    if (rows.values)
      shrink(rows.values.data<float>(), rows.values, max_norm);
    return ctx.output_variable("Out").set(std::move(rows));
  }
  const tensor x = float_input(ctx, "X");
  tensor out = float_output(ctx, "Out", x.dims());
  shrink(out.data<float>(), x, max_norm);
}

} // namespace

void run_clip_by_norm(kernel_context& ctx) {
  clip_to(ctx, ctx.attributes().get_float("max_norm", 0.0f));
}

void run_dgc_clip_by_norm(kernel_context& ctx) {
  const float begin =
    std::trunc(ctx.attributes().get_float("rampup_begin_step", -1.0f));
  if (begin < 0.0f)
    return;
  const bool early = std::trunc(scalar_input(ctx, "current_step")) < begin;
  if (!early)
    clip_to(ctx, ctx.attributes().get_float("max_norm", 0.0f));
}

void run_squared_l2_norm(kernel_context& ctx) {
  const tensor x = float_input(ctx, "X");
  tensor out = float_output(ctx, "Out", {1});
  out.data<float>()[0] =
    static_cast<float>(sum_squares(x.data<float>(), x.numel()));
}

void run_squared_l2_norm_grad(kernel_context& ctx) {
  const tensor x = float_input(ctx, "X");
  const float dout = scalar_input(ctx, "Out@GRAD");
  tensor dx = float_output(ctx, "X@GRAD", x.dims());
  scale_add(dx.data<float>(), x.data<float>(), 2.0f * dout, 0.0f, x.numel());
}

void run_merge_selected_rows(kernel_context& ctx) {
  ctx.output_variable("Out").set(
    merge_rows("X", ctx.input_variable("X").as_rows(), ctx.on().memory()));
}

// The values of the rows, [rows, ...]: enough for a norm over them.
void run_get_tensor_from_selected_rows(kernel_context& ctx) {
  const auto& x = ctx.input_variable("X").as_rows();
  require_rows("X", x);
  if (x.values)
    return ctx.output_variable("Out").set(x.values.share());
  float_output(ctx, "Out", {0});
}

} // namespace troupe::cpu
