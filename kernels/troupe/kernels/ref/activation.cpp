// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/ref/array.hpp>
#include <troupe/kernels/ref/ops.hpp>

#include <cmath>
#include <numbers>

namespace troupe::ref {

namespace {

template <class Function>
void apply(kernel_context& ctx, Function f) {
  auto x = input(ctx, "X");
  for (double& value : x.values)
    value = f(value);
  output(ctx, "Out", x, input_type(ctx, "X"));
}

/// dX = dOut * `derivative`(v), where v is the forward op's X or Out, as `slot`
/// says.
template <class Function>
void backward(kernel_context& ctx, const char* slot, Function derivative) {
  auto v = input(ctx, slot), d = input(ctx, "Out@GRAD");
  require_same("Out@GRAD", d.dims, v.dims);
  for (std::int64_t i = 0; i < d.size(); ++i)
    d[i] *= derivative(v[i]);
  output(ctx, "X@GRAD", d, input_type(ctx, slot));
}

/// The cumulative distribution function and the density of the standard normal
/// distribution.
double normal_cdf(double x) {
  return 0.5 * std::erfc(-x / std::numbers::sqrt2);
}
double normal_pdf(double x) {
  return std::exp(-x * x / 2) / std::sqrt(2 * std::numbers::pi);
}

// Hendrycks and Gimpel, "Gaussian error linear units", 2016: x Phi(x), and the
// approximation 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))).
constexpr double gelu_cubic = 0.044715;

double gelu_factor() {
  return std::sqrt(2 / std::numbers::pi);
}

double gelu_inner(double x) {
  return std::tanh(gelu_factor() * (x + gelu_cubic * x * x * x));
}

double gelu_value(double x, bool approximate) {
  return approximate ? 0.5 * x * (1 + gelu_inner(x)) : x * normal_cdf(x);
}

double gelu_derivative(double x, bool approximate) {
  if (!approximate)
    return normal_cdf(x) + x * normal_pdf(x);
  const double t = gelu_inner(x);
  const double inner = gelu_factor() * (1 + 3 * gelu_cubic * x * x);
  return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * inner;
}

} // namespace

void relu(kernel_context& ctx) {
  apply(ctx, [](double x) { return x > 0 ? x : 0; });
}
void relu_grad(kernel_context& ctx) {
  backward(ctx, "Out", [](double out) { return out > 0 ? 1.0 : 0.0; });
}

void sigmoid(kernel_context& ctx) {
  apply(ctx, [](double x) { return 1 / (1 + std::exp(-x)); });
}
void sigmoid_grad(kernel_context& ctx) {
  backward(ctx, "Out", [](double out) { return out * (1 - out); });
}

void tanh(kernel_context& ctx) {
  apply(ctx, [](double x) { return std::tanh(x); });
}
void tanh_grad(kernel_context& ctx) {
  backward(ctx, "Out", [](double out) { return 1 - out * out; });
}

void gelu(kernel_context& ctx) {
  const bool approximate = ctx.attributes().get_bool("approximate", false);
  apply(ctx, [=](double x) { return gelu_value(x, approximate); });
}
void gelu_grad(kernel_context& ctx) {
  const bool approximate = ctx.attributes().get_bool("approximate", false);
  backward(ctx, "X", [=](double x) { return gelu_derivative(x, approximate); });
}

void square(kernel_context& ctx) {
  apply(ctx, [](double x) { return x * x; });
}
void square_grad(kernel_context& ctx) {
  backward(ctx, "X", [](double x) { return 2 * x; });
}

} // namespace troupe::ref
