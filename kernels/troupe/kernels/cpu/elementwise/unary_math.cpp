// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/cpu/elementwise/elementwise_ops.hpp>
#include <troupe/kernels/cpu/elementwise/unary.hpp>
#include <troupe/kernels/cpu/factories.hpp>
#include <troupe/kernels/cpu/simd/vector_math.hpp>

#include <cmath>
#include <concepts>

namespace troupe::cpu {

namespace {

struct exp : unary_op<saved_value::out> {
  template <class T>
  static T forward(T x, const T*) {
    return exp_of(x);
  }
  template <class T>
  static T gradient(T out, T dout, const T*) {
    return dout * out;
  }
};

struct expm1 : unary_op<saved_value::out> {
  template <class T>
  static T forward(T x, const T*) {
    return std::expm1(x);
  }
  template <class T>
  static T gradient(T out, T dout, const T*) {
    return dout * out + dout;
  }
};

struct log : unary_op<saved_value::x> {
  template <class T>
  static T forward(T x, const T*) {
    return log_of(x);
  }
  template <class T>
  static T gradient(T x, T dout, const T*) {
    return dout / x;
  }
};

struct log2 : unary_op<saved_value::x> {
  template <class T>
  static T forward(T x, const T*) {
    return std::log2(x);
  }
  template <class T>
  static T gradient(T x, T dout, const T*) {
    return dout / (x * T(0.69314718055994530942));
  }
};

struct log10 : unary_op<saved_value::x> {
  template <class T>
  static T forward(T x, const T*) {
    return std::log10(x);
  }
  template <class T>
  static T gradient(T x, T dout, const T*) {
    return dout / (x * T(2.30258509299404568402));
  }
};

struct log1p : unary_op<saved_value::x> {
  template <class T>
  static T forward(T x, const T*) {
    return std::log1p(x);
  }
  template <class T>
  static T gradient(T x, T dout, const T*) {
    return dout / (x + T(1));
  }
};

struct sqrt : unary_op<saved_value::out> {
  template <class T>
  static T forward(T x, const T*) {
    return std::sqrt(x);
  }
  template <class T>
  static T gradient(T out, T dout, const T*) {
    return T(0.5) * dout / out;
  }
};

struct rsqrt : unary_op<saved_value::out> {
  template <class T>
  static T forward(T x, const T*) {
    return T(1) / std::sqrt(x);
  }
  template <class T>
  static T gradient(T out, T dout, const T*) {
    return T(-0.5) * dout * out * out * out;
  }
};

struct reciprocal : unary_op<saved_value::out> {
  template <class T>
  static T forward(T x, const T*) {
    return T(1) / x;
  }
  template <class T>
  static T gradient(T out, T dout, const T*) {
    return -dout * out * out;
  }
};

/// Integers wrap around, here and below.
struct square : unary_op<saved_value::x, true> {
  template <class T>
  static T forward(T x, const T*) {
    return elementwise::multiply::apply(x, x);
  }
  template <class T>
  static T gradient(T x, T dout, const T*) {
    using elementwise::multiply;
    return multiply::apply(multiply::apply(T(2), x), dout);
  }
};

struct abs : unary_op<saved_value::x, true> {
  template <class T>
  static T forward(T x, const T*) {
    return x < T(0) ? negated(x) : (x == T(0) ? T(0) : x); // 0, not -0
  }
  template <class T>
  static T gradient(T x, T dout, const T*) {
    const T negative = x < T(0) ? negated(dout) : T(0);
    return x > T(0) ? dout : negative;
  }

private:
  template <class T>
  static T negated(T x) {
    if constexpr (std::integral<T>)
      return elementwise::subtract::apply(T(0), x);
    else
      return -x;
  }
};

/// Its gradient is the op scale with factor 0.
struct sign : unary_op<saved_value::none> {
  template <class T>
  static T forward(T x, const T*) {
    const T negative = x < T(0) ? T(-1) : x;
    return x > T(0) ? T(1) : negative;
  }
  template <class T>
  static T gradient(T, T, const T*) {
    return T(0);
  }
};

/// The base of ops that are constant almost everywhere.
struct step_op : unary_op<saved_value::none> {
  template <class T>
  static T gradient(T, T, const T*) {
    return T(0);
  }
};

struct floor : step_op {
  template <class T>
  static T forward(T x, const T*) {
    return std::floor(x);
  }
};

struct ceil : step_op {
  template <class T>
  static T forward(T x, const T*) {
    return std::ceil(x);
  }
};

/// Rounds halves away from zero.
struct round : step_op {
  template <class T>
  static T forward(T x, const T*) {
    return std::round(x);
  }
};

struct sin : unary_op<saved_value::x> {
  template <class T>
  static T forward(T x, const T*) {
    return std::sin(x);
  }
  template <class T>
  static T gradient(T x, T dout, const T*) {
    return dout * std::cos(x);
  }
};

struct cos : unary_op<saved_value::x> {
  template <class T>
  static T forward(T x, const T*) {
    return std::cos(x);
  }
  template <class T>
  static T gradient(T x, T dout, const T*) {
    return -dout * std::sin(x);
  }
};

struct tan : unary_op<saved_value::x> {
  template <class T>
  static T forward(T x, const T*) {
    return std::tan(x);
  }
  template <class T>
  static T gradient(T x, T dout, const T*) {
    const T c = std::cos(x);
    return dout / (c * c);
  }
};

struct erf : unary_op<saved_value::x> {
  template <class T>
  static T forward(T x, const T*) {
    return std::erf(x);
  }
  template <class T>
  static T gradient(T x, T dout, const T*) {
    return dout * T(1.12837916709551257390) * exp_of(-x * x); // 2 / sqrt(pi)
  }
};

/// The factor is an attribute or a tensor.
struct power : unary_op<saved_value::x, true> {
  static constexpr unary_parameter parameters[] = {{"factor", 1.0f}};
  template <class T>
  static T forward(T x, const T* p) {
    return static_cast<T>(std::pow(x, p[0]));
  }
  template <class T>
  static T gradient(T x, T dout, const T* p) {
    return dout * p[0] * static_cast<T>(std::pow(x, p[0] - T(1)));
  }
};

unary_values<power> factor(const kernel_context& ctx) {
  return {static_cast<float>(number_input(ctx, "FactorTensor", "factor",
                                          power::parameters[0].otherwise))};
}

void run_pow(kernel_context& ctx) {
  run_unary_with<power>(ctx, factor(ctx));
}

void run_pow_gradient(kernel_context& ctx) {
  run_unary_gradient_with<power>(ctx, factor(ctx));
}

constexpr unary_entry unary_math_entries[] = {
  unary<exp>("exp", "exp_grad"),
  unary<expm1>("expm1", "expm1_grad"),
  unary<log>("log", "log_grad"),
  unary<log2>("log2", "log2_grad"),
  unary<log10>("log10", "log10_grad"),
  unary<log1p>("log1p", "log1p_grad"),
  unary<sqrt>("sqrt", "sqrt_grad"),
  unary<rsqrt>("rsqrt", "rsqrt_grad"),
  unary<reciprocal>("reciprocal", "reciprocal_grad"),
  unary<square>("square", "square_grad"),
  unary<abs>("abs", "abs_grad"),
  unary<sign>("sign", nullptr),
  unary<floor>("floor", "floor_grad"),
  unary<ceil>("ceil", "ceil_grad"),
  unary<round>("round", "round_grad"),
  unary<sin>("sin", "sin_grad"),
  unary<cos>("cos", "cos_grad"),
  unary<tan>("tan", "tan_grad"),
  unary<erf>("erf", "erf_grad"),
  {"pow", "pow_grad", run_pow, run_pow_gradient},
};

} // namespace

void add_unary_math(kernel_table& table) {
  add_unary(table, unary_math_entries);
}

} // namespace troupe::cpu
