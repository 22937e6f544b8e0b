// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/cpu/arguments.hpp>
#include <troupe/kernels/cpu/factories.hpp>
#include <troupe/kernels/cpu/simd/simd.hpp>
#include <troupe/kernels/cpu/simd/vector_ops.hpp>

#include <troupe/base/error.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

// Gradients of a scaled loss in mixed precision.
// Source: Micikevicius et al., "Mixed precision training", 2018, section 3.2.
namespace troupe::cpu {

namespace {

// Infinities and NaN have all bits of the exponent set.
TROUPE_SIMD bool all_finite(const float* x, std::int64_t n) {
  constexpr std::uint32_t exponent = 0x7f800000;
  std::uint32_t found = 0;
#pragma omp simd reduction(| : found)
  for (std::int64_t i = 0; i < n; ++i)
    found |= (std::bit_cast<std::uint32_t>(x[i]) & exponent) == exponent;
  return found == 0;
}

std::int32_t count_input(const kernel_context& ctx, std::string_view slot) {
  const tensor value = ctx.input(slot);
  if (value.type() != dtype::int32 || value.numel() != 1)
    throw error(errc::dtype_mismatch,
                std::string(slot) + " must be one int32 element");
  return value.data<std::int32_t>()[0];
}

void write_count(kernel_context& ctx, std::string_view slot,
                 std::int32_t count) {
  ctx.output(slot, {1}, dtype::int32).data<std::int32_t>()[0] = count;
}

bool updates_stop(const kernel_context& ctx) {
  return ctx.has_input("StopUpdate")
           ? flag_input(ctx, "StopUpdate")
           : ctx.attributes().get_bool("stop_update", false);
}

struct loss_scale {
  float factor = 1.0f;
  std::int32_t good_steps = 0; // consecutive
  std::int32_t bad_steps = 0;
};

/// count + 1, saturating: a count from a file may be the largest number.
std::int32_t next(std::int32_t count) {
  return count == std::numeric_limits<std::int32_t>::max() ? count : count + 1;
}

loss_scale after_bad_step(const attribute_map& attributes, loss_scale s) {
  s.good_steps = 0;
  s.bad_steps = next(s.bad_steps);
  if (s.bad_steps == attributes.get_int("decr_every_n_nan_or_inf", 2)) {
    s.factor =
      std::max(1.0f, s.factor * attributes.get_float("decr_ratio", 0.8f));
    s.bad_steps = 0;
  }
  return s;
}

loss_scale after_good_step(const attribute_map& attributes, loss_scale s) {
  s.bad_steps = 0;
  s.good_steps = next(s.good_steps);
  if (s.good_steps == attributes.get_int("incr_every_n_steps", 1000)) {
    const float more = s.factor * attributes.get_float("incr_ratio", 2.0f);
    if (std::isfinite(more))
      s.factor = more;
    s.good_steps = 0;
  }
  return s;
}

void zero_all(kernel_context& ctx) {
  for (std::size_t i = 0; i < ctx.num_inputs("X"); ++i) {
    tensor out = float_output(ctx, "Out", float_input(ctx, "X", i).dims(), i);
    fill(out.data<float>(), out.numel(), 0.0f);
  }
}

void pass_all(kernel_context& ctx) {
  for (std::size_t i = 0; i < ctx.num_inputs("X"); ++i) {
    const tensor x = float_input(ctx, "X", i);
    tensor out = float_output(ctx, "Out", x.dims(), i);
    copy(out.data<float>(), x.data<float>(), x.numel());
  }
}

} // namespace

// From the first input that is not finite on, all are multiplied by zero, and
// NaN stays NaN. Their values must not be used.
void run_check_finite_and_unscale(kernel_context& ctx) {
  const float inverse = 1.0f / scalar_input(ctx, "Scale");
  bool found = false;
  for (std::size_t i = 0; i < ctx.num_inputs("X"); ++i) {
    const tensor x = float_input(ctx, "X", i);
    found = found || !all_finite(x.data<float>(), x.numel());
    tensor out = float_output(ctx, "Out", x.dims(), i);
    scale_add(out.data<float>(), x.data<float>(), found ? 0.0f : inverse, 0.0f,
              x.numel());
  }
  ctx.output("FoundInfinite", {1}, dtype::boolean).data<bool>()[0] = found;
}

void run_update_loss_scaling(kernel_context& ctx) {
  const bool found = flag_input(ctx, "FoundInfinite");
  if (found)
    zero_all(ctx);
  else
    pass_all(ctx);
  if (updates_stop(ctx))
    return;
  const loss_scale before{scalar_input(ctx, "PrevLossScaling"),
                          count_input(ctx, "InGoodSteps"),
                          count_input(ctx, "InBadSteps")};
  const auto after = found ? after_bad_step(ctx.attributes(), before)
                           : after_good_step(ctx.attributes(), before);
  float_output(ctx, "LossScaling", {1}).data<float>()[0] = after.factor;
  write_count(ctx, "OutGoodSteps", after.good_steps);
  write_count(ctx, "OutBadSteps", after.bad_steps);
}

} // namespace troupe::cpu
