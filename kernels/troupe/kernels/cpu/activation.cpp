// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/cpu/arguments.hpp>
#include <troupe/kernels/cpu/factories.hpp>
#include <troupe/kernels/cpu/simd.hpp>
#include <troupe/kernels/cpu/vector_math.hpp>

namespace troupe::cpu {

namespace {

using unary_loop = void (*)(float* out, const float* x, std::int64_t n);
// `saved` is X or Out of the forward op.
using gradient_loop = void (*)(float* dx, const float* saved, const float* dout,
                               std::int64_t n);

// Comparisons are written so that NaN stays NaN.
TROUPE_SIMD void relu_loop(float* out, const float* x, std::int64_t n) {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i)
    out[i] = x[i] < 0.0f ? 0.0f : x[i];
}

TROUPE_SIMD void relu_grad_loop(float* dx, const float* out, const float* dout,
                                std::int64_t n) {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i)
    dx[i] = out[i] > 0.0f ? dout[i] : 0.0f;
}

TROUPE_SIMD void sigmoid_loop(float* out, const float* x, std::int64_t n) {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i)
    out[i] = fast_sigmoid(x[i]);
}

TROUPE_SIMD void sigmoid_grad_loop(float* dx, const float* out,
                                   const float* dout, std::int64_t n) {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i)
    dx[i] = dout[i] * out[i] * (1.0f - out[i]);
}

TROUPE_SIMD void tanh_loop(float* out, const float* x, std::int64_t n) {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i)
    out[i] = fast_tanh(x[i]);
}

TROUPE_SIMD void tanh_grad_loop(float* dx, const float* out, const float* dout,
                                std::int64_t n) {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i)
    dx[i] = dout[i] * (1.0f - out[i] * out[i]);
}

TROUPE_SIMD void square_loop(float* out, const float* x, std::int64_t n) {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i)
    out[i] = x[i] * x[i];
}

TROUPE_SIMD void square_grad_loop(float* dx, const float* x, const float* dout,
                                  std::int64_t n) {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i)
    dx[i] = 2.0f * x[i] * dout[i];
}

// Source: Hendrycks and Gimpel, "Gaussian error linear units", 2016.
constexpr float sqrt_half = 0.70710678118654752f;
constexpr float sqrt_two_over_pi = 0.79788456080286536f;
constexpr float inverse_sqrt_two_pi = 0.39894228040143268f;
constexpr float cubic = 0.044715f;

TROUPE_SIMD void gelu_loop(float* out, const float* x, std::int64_t n) {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i)
    out[i] = 0.5f * x[i] * (1.0f + fast_erf(x[i] * sqrt_half));
}

TROUPE_SIMD void gelu_grad_loop(float* dx, const float* x, const float* dout,
                                std::int64_t n) {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) {
    const float v = x[i];
    const float cdf = 0.5f * (1.0f + fast_erf(v * sqrt_half));
    const float pdf = inverse_sqrt_two_pi * fast_exp(-0.5f * v * v);
    dx[i] = dout[i] * (cdf + v * pdf);
  }
}

TROUPE_SIMD void gelu_tanh_loop(float* out, const float* x, std::int64_t n) {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) {
    const float v = x[i];
    const float inner = sqrt_two_over_pi * (v + cubic * v * v * v);
    out[i] = 0.5f * v * (1.0f + fast_tanh(inner));
  }
}

TROUPE_SIMD void gelu_tanh_grad_loop(float* dx, const float* x,
                                     const float* dout, std::int64_t n) {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) {
    const float v = x[i];
    const float t = fast_tanh(sqrt_two_over_pi * (v + cubic * v * v * v));
    const float slope = sqrt_two_over_pi * (1.0f + 3.0f * cubic * v * v);
    dx[i] = dout[i] * 0.5f * (1.0f + t + v * (1.0f - t * t) * slope);
  }
}

void map(kernel_context& ctx, unary_loop loop) {
  const tensor x = float_input(ctx, "X");
  tensor out = float_output(ctx, "Out", x.dims());
  loop(out.data<float>(), x.data<float>(), x.numel());
}

void map_gradient(kernel_context& ctx, std::string_view saved_slot,
                  gradient_loop loop) {
  const tensor saved = float_input(ctx, saved_slot);
  const tensor dout = float_input(ctx, "Out@GRAD");
  require_shape("Out@GRAD", dout.dims(), saved.dims());
  tensor dx = float_output(ctx, "X@GRAD", saved.dims());
  loop(dx.data<float>(), saved.data<float>(), dout.data<float>(),
       saved.numel());
}

} // namespace

void run_relu(kernel_context& ctx) {
  map(ctx, relu_loop);
}
void run_relu_grad(kernel_context& ctx) {
  map_gradient(ctx, "Out", relu_grad_loop);
}
void run_sigmoid(kernel_context& ctx) {
  map(ctx, sigmoid_loop);
}
void run_sigmoid_grad(kernel_context& ctx) {
  map_gradient(ctx, "Out", sigmoid_grad_loop);
}
void run_tanh(kernel_context& ctx) {
  map(ctx, tanh_loop);
}
void run_tanh_grad(kernel_context& ctx) {
  map_gradient(ctx, "Out", tanh_grad_loop);
}
void run_square(kernel_context& ctx) {
  map(ctx, square_loop);
}
void run_square_grad(kernel_context& ctx) {
  map_gradient(ctx, "X", square_grad_loop);
}

void run_gelu(kernel_context& ctx) {
  const bool approximate = ctx.attributes().get_bool("approximate", false);
  map(ctx, approximate ? gelu_tanh_loop : gelu_loop);
}

void run_gelu_grad(kernel_context& ctx) {
  const bool approximate = ctx.attributes().get_bool("approximate", false);
  map_gradient(ctx, "X", approximate ? gelu_tanh_grad_loop : gelu_grad_loop);
}

} // namespace troupe::cpu
