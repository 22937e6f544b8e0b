// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/cpu/elementwise/unary.hpp>
#include <troupe/kernels/cpu/factories.hpp>
#include <troupe/kernels/cpu/simd/vector_math.hpp>

namespace troupe::cpu {

namespace {

struct relu : unary_op<saved_value::out> {
  template <class T>
  static T forward(T x, const T*) {
    return x < T(0) ? T(0) : x;
  }
  template <class T>
  static T gradient(T out, T dout, const T*) {
    return out > T(0) ? dout : T(0);
  }
};

struct relu6 : unary_op<saved_value::out> {
  static constexpr unary_parameter parameters[] = {{"threshold", 6.0f}};
  template <class T>
  static T forward(T x, const T* p) {
    const T positive = x < T(0) ? T(0) : x;
    return positive > p[0] ? p[0] : positive;
  }
  template <class T>
  static T gradient(T out, T dout, const T* p) {
    return out > T(0) && out < p[0] ? dout : T(0);
  }
};

struct leaky_relu : unary_op<saved_value::x> {
  static constexpr unary_parameter parameters[] = {{"alpha", 0.02f}};
  template <class T>
  static T forward(T x, const T* p) {
    const T scaled = p[0] * x;
    const T most = x < scaled ? scaled : x;
    const T least = x < scaled ? x : scaled;
    return p[0] < T(1) ? most : least;
  }
  template <class T>
  static T gradient(T x, T dout, const T* p) {
    return x < T(0) ? p[0] * dout : dout;
  }
};

struct brelu : unary_op<saved_value::x> {
  static constexpr unary_parameter parameters[] = {{"t_min", 0.0f},
                                                   {"t_max", 24.0f}};
  template <class T>
  static T forward(T x, const T* p) {
    const T high = x < p[0] ? p[0] : x;
    return high > p[1] ? p[1] : high;
  }
  template <class T>
  static T gradient(T x, T dout, const T* p) {
    return x > p[0] && x < p[1] ? dout : T(0);
  }
};

struct thresholded_relu : unary_op<saved_value::x> {
  static constexpr unary_parameter parameters[] = {{"threshold", 1.0f}};
  template <class T>
  static T forward(T x, const T* p) {
    return x > p[0] ? x : T(0);
  }
  template <class T>
  static T gradient(T x, T dout, const T* p) {
    return x > p[0] ? dout : T(0);
  }
};

struct hard_shrink : unary_op<saved_value::x> {
  static constexpr unary_parameter parameters[] = {{"threshold", 0.5f}};
  template <class T>
  static T forward(T x, const T* p) {
    return x < -p[0] || x > p[0] ? x : T(0);
  }
  template <class T>
  static T gradient(T x, T dout, const T* p) {
    return x < -p[0] || x > p[0] ? dout : T(0);
  }
};

struct softshrink : unary_op<saved_value::x> {
  static constexpr unary_parameter parameters[] = {{"lambda", 0.5f}};
  template <class T>
  static T forward(T x, const T* p) {
    const T low = x < -p[0] ? x + p[0] : T(0);
    return x > p[0] ? x - p[0] : low;
  }
  template <class T>
  static T gradient(T x, T dout, const T* p) {
    return x < -p[0] || x > p[0] ? dout : T(0);
  }
};

struct elu : unary_op<saved_value::x> {
  static constexpr unary_parameter parameters[] = {{"alpha", 1.0f}};
  template <class T>
  static T forward(T x, const T* p) {
    return x < T(0) ? p[0] * (exp_of(x) - T(1)) : x;
  }
  template <class T>
  static T gradient(T x, T dout, const T* p) {
    return x > T(0) ? dout : dout * p[0] * exp_of(x);
  }
};

struct celu : unary_op<saved_value::x> {
  static constexpr unary_parameter parameters[] = {{"alpha", 1.0f}};
  template <class T>
  static T forward(T x, const T* p) {
    return x < T(0) ? p[0] * (exp_of(x / p[0]) - T(1)) : x;
  }
  template <class T>
  static T gradient(T x, T dout, const T* p) {
    return x > T(0) ? dout : dout * exp_of(x / p[0]);
  }
};

// Source: Klambauer et al., "Self-normalizing neural networks", 2017.
struct selu : unary_op<saved_value::out> {
  static constexpr unary_parameter parameters[] = {
    {"scale", 1.0507009873554804934f}, {"alpha", 1.6732632423543772848f}};
  template <class T>
  static T forward(T x, const T* p) {
    return p[0] * (x > T(0) ? x : p[1] * exp_of(x) - p[1]);
  }
  template <class T>
  static T gradient(T out, T dout, const T* p) {
    return dout * (out > T(0) ? p[0] : out + p[0] * p[1]);
  }
};

struct sigmoid : unary_op<saved_value::out> {
  template <class T>
  static T forward(T x, const T*) {
    return sigmoid_of(x);
  }
  template <class T>
  static T gradient(T out, T dout, const T*) {
    return dout * out * (T(1) - out);
  }
};

struct logsigmoid : unary_op<saved_value::x> {
  template <class T>
  static T forward(T x, const T*) {
    return -softplus_of(-x);
  }
  template <class T>
  static T gradient(T x, T dout, const T*) {
    return dout * sigmoid_of(-x);
  }
};

struct hard_sigmoid : unary_op<saved_value::out> {
  static constexpr unary_parameter parameters[] = {{"slope", 0.2f},
                                                   {"offset", 0.5f}};
  template <class T>
  static T forward(T x, const T* p) {
    const T line = x * p[0] + p[1];
    const T positive = line < T(0) ? T(0) : line;
    return positive > T(1) ? T(1) : positive;
  }
  template <class T>
  static T gradient(T out, T dout, const T* p) {
    return out > T(0) && out < T(1) ? dout * p[0] : T(0);
  }
};

// silu is swish without attribute beta.
struct swish : unary_op<saved_value::x> {
  static constexpr unary_parameter parameters[] = {{"beta", 1.0f}};
  template <class T>
  static T forward(T x, const T* p) {
    return x * sigmoid_of(p[0] * x);
  }
  template <class T>
  static T gradient(T x, T dout, const T* p) {
    const T s = sigmoid_of(p[0] * x);
    return dout * s * (T(1) + p[0] * x * (T(1) - s));
  }
};

struct hard_swish : unary_op<saved_value::x> {
  static constexpr unary_parameter parameters[] = {
    {"threshold", 6.0f}, {"scale", 6.0f}, {"offset", 3.0f}};
  template <class T>
  static T forward(T x, const T* p) {
    const T shifted = x + p[2];
    const T positive = shifted < T(0) ? T(0) : shifted;
    return x * (positive > p[0] ? p[0] : positive) / p[1];
  }
  template <class T>
  static T gradient(T x, T dout, const T* p) {
    const T shifted = x + p[2];
    const T inner = shifted > T(0) ? (x + shifted) / p[1] : T(0);
    return dout * (shifted < p[0] ? inner : T(1));
  }
};

// Source: Misra, "Mish: a self regularized non-monotonic activation", 2019.
struct mish : unary_op<saved_value::x> {
  static constexpr unary_parameter parameters[] = {{"threshold", 20.0f}};
  template <class T>
  static T inner(T x, const T* p) {
    return tanh_of(x > p[0] ? x : softplus_of(x));
  }
  template <class T>
  static T forward(T x, const T* p) {
    return x * inner(x, p);
  }
  template <class T>
  static T gradient(T x, T dout, const T* p) {
    const T t = inner(x, p);
    const T slope = x > p[0] ? T(1) - exp_of(-x) : sigmoid_of(x);
    return dout * (t + x * (T(1) - t * t) * slope);
  }
};

struct softplus : unary_op<saved_value::x> {
  static constexpr unary_parameter parameters[] = {{"beta", 1.0f},
                                                   {"threshold", 20.0f}};
  template <class T>
  static T forward(T x, const T* p) {
    return x * p[0] > p[1] ? x : softplus_of(x * p[0]) / p[0];
  }
  template <class T>
  static T gradient(T x, T dout, const T* p) {
    return x * p[0] > p[1] ? dout : dout * sigmoid_of(x * p[0]);
  }
};

struct softsign : unary_op<saved_value::x> {
  template <class T>
  static T forward(T x, const T*) {
    return x / (T(1) + std::abs(x));
  }
  template <class T>
  static T gradient(T x, T dout, const T*) {
    const T below = T(1) + std::abs(x);
    return dout / (below * below);
  }
};

struct tanh : unary_op<saved_value::out> {
  template <class T>
  static T forward(T x, const T*) {
    return tanh_of(x);
  }
  template <class T>
  static T gradient(T out, T dout, const T*) {
    return dout * (T(1) - out * out);
  }
};

struct tanh_shrink : unary_op<saved_value::x> {
  template <class T>
  static T forward(T x, const T*) {
    return x - tanh_of(x);
  }
  template <class T>
  static T gradient(T x, T dout, const T*) {
    const T t = tanh_of(x);
    return dout * t * t;
  }
};

struct stanh : unary_op<saved_value::x> {
  static constexpr unary_parameter parameters[] = {{"scale_a", 0.67f},
                                                   {"scale_b", 1.7159f}};
  template <class T>
  static T forward(T x, const T* p) {
    return p[1] * tanh_of(p[0] * x);
  }
  template <class T>
  static T gradient(T x, T dout, const T* p) {
    const T t = tanh_of(p[0] * x);
    return dout * p[0] * p[1] * (T(1) - t * t);
  }
};

// Source: Hendrycks and Gimpel, "Gaussian error linear units", 2016.
struct gelu : unary_op<saved_value::x> {
  template <class T>
  static T distribution(T x) {
    constexpr T sqrt_half = T(0.70710678118654752440);
    return T(0.5) * (T(1) + erf_of(x * sqrt_half));
  }
  template <class T>
  static T forward(T x, const T*) {
    return x * distribution(x);
  }
  template <class T>
  static T gradient(T x, T dout, const T*) {
    constexpr T inverse_sqrt_two_pi = T(0.39894228040143267794);
    const T density = inverse_sqrt_two_pi * exp_of(T(-0.5) * x * x);
    return dout * (distribution(x) + x * density);
  }
};

struct gelu_by_tanh : unary_op<saved_value::x> {
  template <class T>
  static T inner(T x) {
    return tanh_of(slope<T> * (x + cubic<T> * x * x * x));
  }
  template <class T>
  static T forward(T x, const T*) {
    return T(0.5) * x * (T(1) + inner(x));
  }
  template <class T>
  static T gradient(T x, T dout, const T*) {
    const T t = inner(x);
    const T inner_slope = slope<T> * (T(1) + T(3) * cubic<T> * x * x);
    return dout * T(0.5) * (T(1) + t + x * (T(1) - t * t) * inner_slope);
  }

private:
  template <class T>
  static constexpr T slope = T(0.79788456080286535588); // sqrt(2 / pi)
  template <class T>
  static constexpr T cubic = T(0.044715);
};

bool approximate(const kernel_context& ctx) {
  return ctx.attributes().get_bool("approximate", false);
}

void run_gelu(kernel_context& ctx) {
  return approximate(ctx) ? run_unary<gelu_by_tanh>(ctx) : run_unary<gelu>(ctx);
}

void run_gelu_gradient(kernel_context& ctx) {
  return approximate(ctx) ? run_unary_gradient<gelu_by_tanh>(ctx)
                          : run_unary_gradient<gelu>(ctx);
}

constexpr unary_entry activation_entries[] = {
  unary<relu>("relu", "relu_grad"),
  unary<relu6>("relu6", "relu6_grad"),
  unary<leaky_relu>("leaky_relu", "leaky_relu_grad"),
  unary<brelu>("brelu", "brelu_grad"),
  unary<thresholded_relu>("thresholded_relu", "thresholded_relu_grad"),
  unary<hard_shrink>("hard_shrink", "hard_shrink_grad"),
  unary<softshrink>("softshrink", "softshrink_grad"),
  unary<elu>("elu", "elu_grad"),
  unary<celu>("celu", "celu_grad"),
  unary<selu>("selu", "selu_grad"),
  unary<sigmoid>("sigmoid", "sigmoid_grad"),
  unary<logsigmoid>("logsigmoid", "logsigmoid_grad"),
  unary<hard_sigmoid>("hard_sigmoid", "hard_sigmoid_grad"),
  unary<swish>("silu", "silu_grad"),
  unary<swish>("swish", "swish_grad"),
  unary<hard_swish>("hard_swish", "hard_swish_grad"),
  unary<mish>("mish", "mish_grad"),
  unary<softplus>("softplus", "softplus_grad"),
  unary<softsign>("softsign", "softsign_grad"),
  unary<tanh>("tanh", "tanh_grad"),
  unary<tanh_shrink>("tanh_shrink", "tanh_shrink_grad"),
  unary<stanh>("stanh", "stanh_grad"),
  {"gelu", "gelu_grad", run_gelu, run_gelu_gradient},
};

} // namespace

void add_activations(kernel_table& table) {
  add_unary(table, activation_entries);
}

} // namespace troupe::cpu
