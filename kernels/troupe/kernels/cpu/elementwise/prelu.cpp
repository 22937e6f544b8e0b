// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/cpu/arguments.hpp>
#include <troupe/kernels/cpu/factories.hpp>
#include <troupe/kernels/cpu/norm/channel_statistics.hpp>
#include <troupe/kernels/cpu/simd/simd.hpp>
#include <troupe/kernels/cpu/simd/vector_ops.hpp>

#include <troupe/base/error.hpp>

#include <string>

namespace troupe::cpu {

namespace {

// Each element of a run has its own slope, or all have one (step 0).
TROUPE_SIMD void forward_run(float* out, const float* x, const float* slope,
                             std::int64_t step, std::int64_t n) {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i)
    out[i] = x[i] > 0.0f ? x[i] : slope[i * step] * x[i];
}

TROUPE_SIMD void input_run(float* dx, const float* x, const float* dout,
                           const float* slope, std::int64_t step,
                           std::int64_t n) {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i)
    dx[i] = x[i] > 0.0f ? dout[i] : slope[i * step] * dout[i];
}

// The gradient of slopes comes from the elements that they scaled.
void slope_run(float* dslope, std::int64_t step, const float* x,
               const float* dout, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i)
    dslope[i * step] += x[i] > 0.0f ? 0.0f : x[i] * dout[i];
}

// X as [samples, slopes, elements per slope].
channel_view view_of(const kernel_context& ctx, const shape& x,
                     const tensor& alpha) {
  const auto mode = ctx.attributes().get_string("mode", "all");
  const bool channels_last =
    ctx.attributes().get_string("data_format", "NCHW") == "NHWC";
  channel_view v{1, 1, x.numel()};
  if (mode == "channel" && x.rank() >= 2)
    v = channels_last ? channel_view{x.numel(0, x.rank() - 1), x.dim(-1), 1}
                      : channel_view{x[0], x[1], x.numel(2, x.rank())};
  else if (mode == "element" && x.rank() >= 1)
    v = {x[0], x.numel(1, x.rank()), 1};
  else if (mode != "all")
    throw error(errc::invalid_argument, "attribute mode of prelu is " + mode
                                          + " for X " + to_string(x));
  if (alpha.numel() != v.channels)
    throw_shapes("Alpha", alpha.dims(), "X", x,
                 "expected " + std::to_string(v.channels) + " slopes");
  return v;
}

// Calls `act(offset, offset of the slope, step of slopes, count)` for each run.
template <class Act>
void for_each_run(const channel_view& v, Act act) {
  if (v.pixels == 1)
    for (std::int64_t i = 0; i < v.samples; ++i)
      act(i * v.channels, std::int64_t{0}, std::int64_t{1}, v.channels);
  else
    for (std::int64_t i = 0; i < v.samples * v.channels; ++i)
      act(i * v.pixels, i % v.channels, std::int64_t{0}, v.pixels);
}

} // namespace

// Source: He et al., "Delving deep into rectifiers", 2015.
void run_prelu(kernel_context& ctx) {
  const tensor x = float_input(ctx, "X");
  const tensor alpha = float_input(ctx, "Alpha");
  const channel_view v = view_of(ctx, x.dims(), alpha);
  tensor out = float_output(ctx, "Out", x.dims());
  for_each_run(v, [&](auto at, auto slope, auto step, auto n) {
    forward_run(out.data<float>() + at, x.data<float>() + at,
                alpha.data<float>() + slope, step, n);
  });
}

void run_prelu_grad(kernel_context& ctx) {
  const tensor x = float_input(ctx, "X");
  const tensor alpha = float_input(ctx, "Alpha");
  const tensor dout = float_input(ctx, "Out@GRAD");
  require_shape("Out@GRAD", dout.dims(), x.dims());
  const channel_view v = view_of(ctx, x.dims(), alpha);
  if (ctx.has_output("Alpha@GRAD")) {
    tensor dalpha = float_output(ctx, "Alpha@GRAD", alpha.dims());
    fill(dalpha.data<float>(), dalpha.numel(), 0.0f);
    for_each_run(v, [&](auto at, auto slope, auto step, auto n) {
      slope_run(dalpha.data<float>() + slope, step, x.data<float>() + at,
                dout.data<float>() + at, n);
    });
  }
  if (!ctx.has_output("X@GRAD"))
    return;
  tensor dx = float_output(ctx, "X@GRAD", x.dims());
  for_each_run(v, [&](auto at, auto slope, auto step, auto n) {
    input_run(dx.data<float>() + at, x.data<float>() + at,
              dout.data<float>() + at, alpha.data<float>() + slope, step, n);
  });
}

} // namespace troupe::cpu
