// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/cpu/arguments.hpp>
#include <troupe/kernels/cpu/factories.hpp>
#include <troupe/kernels/cpu/row_softmax.hpp>
#include <troupe/kernels/cpu/simd.hpp>

namespace troupe::cpu {

namespace {

axis_view view_of(const kernel_context& ctx, const shape& dims,
                  std::string_view slot) {
  const auto axis = ctx.attributes().get_int("axis", -1);
  return {dims, normal_axis(axis, dims.rank(), slot)};
}

TROUPE_SIMD void gradient_row(float* dx, const float* out, const float* dout,
                              float dot, std::int64_t n) {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i)
    dx[i] = out[i] * (dout[i] - dot);
}

void gather(float* line, const float* x, std::int64_t n, std::int64_t step) {
  for (std::int64_t i = 0; i < n; ++i)
    line[i] = x[i * step];
}

void scatter(float* out, const float* line, std::int64_t n, std::int64_t step) {
  for (std::int64_t i = 0; i < n; ++i)
    out[i * step] = line[i];
}

void softmax_rows(const axis_view& v, float* out, const float* x) {
  for (std::int64_t o = 0; o < v.outer; ++o)
    row_softmax(out + o * v.extent, x + o * v.extent, v.extent);
}

// Lines that do not lie together go through a buffer.
void softmax_lines(const axis_view& v, float* out, const float* x,
                   float* line) {
  for (std::int64_t o = 0; o < v.outer; ++o)
    for (std::int64_t i = 0; i < v.inner; ++i) {
      const std::int64_t first = o * v.extent * v.inner + i;
      gather(line, x + first, v.extent, v.inner);
      row_softmax(line, line, v.extent);
      scatter(out + first, line, v.extent, v.inner);
    }
}

void gradient_line(float* dx, const float* out, const float* dout,
                   std::int64_t n) {
  gradient_row(dx, out, dout, row_dot(out, dout, n), n);
}

void gradient_lines(const axis_view& v, float* dx, const float* out,
                    const float* dout, float* buffer) {
  float* out_line = buffer;
  float* dout_line = buffer + v.extent;
  for (std::int64_t o = 0; o < v.outer; ++o)
    for (std::int64_t i = 0; i < v.inner; ++i) {
      const std::int64_t first = o * v.extent * v.inner + i;
      gather(out_line, out + first, v.extent, v.inner);
      gather(dout_line, dout + first, v.extent, v.inner);
      gradient_line(dout_line, out_line, dout_line, v.extent);
      scatter(dx + first, dout_line, v.extent, v.inner);
    }
}

} // namespace

void run_softmax(kernel_context& ctx) {
  const tensor x = float_input(ctx, "X");
  tensor out = float_output(ctx, "Out", x.dims());
  const axis_view v = view_of(ctx, x.dims(), "X");
  if (x.numel() == 0)
    return;
  if (v.inner == 1)
    return softmax_rows(v, out.data<float>(), x.data<float>());
  tensor line = ctx.scratch(v.extent);
  softmax_lines(v, out.data<float>(), x.data<float>(), line.data<float>());
}

void run_softmax_grad(kernel_context& ctx) {
  const tensor out = float_input(ctx, "Out");
  const tensor dout = float_input(ctx, "Out@GRAD");
  require_shape("Out@GRAD", dout.dims(), out.dims());
  tensor dx = float_output(ctx, "X@GRAD", out.dims());
  const axis_view v = view_of(ctx, out.dims(), "Out");
  if (v.inner != 1) {
    tensor buffer = ctx.scratch(2 * v.extent);
    return gradient_lines(v, dx.data<float>(), out.data<float>(),
                          dout.data<float>(), buffer.data<float>());
  }
  for (std::int64_t o = 0; o < v.outer; ++o)
    gradient_line(dx.data<float>() + o * v.extent,
                  out.data<float>() + o * v.extent,
                  dout.data<float>() + o * v.extent, v.extent);
}

} // namespace troupe::cpu
