// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/kernels/cuda/bodies/body.hpp>

namespace troupe::cuda {

// -- functions of one number --------------------------------------------------

struct relu_function {
  static constexpr const char* name = "relu";
  TROUPE_BODY static float of(float x) { return x > 0 ? x : 0; }
  /// The derivative, given the result.
  TROUPE_BODY static float slope(float out) { return out > 0 ? 1.0f : 0.0f; }
};

struct tanh_function {
  static constexpr const char* name = "tanh";
  TROUPE_BODY static float of(float x) { return ::tanhf(x); }
  TROUPE_BODY static float slope(float out) { return 1 - out * out; }
};

struct sigmoid_function {
  static constexpr const char* name = "sigmoid";
  TROUPE_BODY static float of(float x) { return 1 / (1 + ::expf(-x)); }
  TROUPE_BODY static float slope(float out) { return out * (1 - out); }
};

struct square_function {
  static constexpr const char* name = "square";
  TROUPE_BODY static float of(float x) { return x * x; }
  /// The derivative, given x.
  TROUPE_BODY static float slope_at(float x) { return 2 * x; }
};

struct sqrt_function {
  static constexpr const char* name = "sqrt";
  TROUPE_BODY static float of(float x) { return ::sqrtf(x); }
  TROUPE_BODY static float slope(float out) { return 0.5f / out; }
};

/// x times the normal distribution's value at x
struct gelu_function {
  static constexpr const char* name = "gelu";
  TROUPE_BODY static float distribution(float x) {
    return 0.5f * (1 + ::erff(x * 0.70710678f));
  }
  TROUPE_BODY static float of(float x) { return x * distribution(x); }
  TROUPE_BODY static float slope_at(float x) {
    const float density = 0.39894228f * ::expf(-0.5f * x * x);
    return distribution(x) + x * density;
  }
};

/// The same, approximately.
struct gelu_by_tanh_function {
  static constexpr const char* name = "gelu";
  TROUPE_BODY static float inner(float x) {
    return ::tanhf(0.79788456f * (x + 0.044715f * x * x * x));
  }
  TROUPE_BODY static float of(float x) { return 0.5f * x * (1 + inner(x)); }
  TROUPE_BODY static float slope_at(float x) {
    const float t = inner(x);
    const float inner_slope = 0.79788456f * (1 + 3 * 0.044715f * x * x);
    return 0.5f * (1 + t + x * (1 - t * t) * inner_slope);
  }
};

/// out[i] = f(x[i])
template <class Function>
struct unary {
  static constexpr const char* name = Function::name;
  static constexpr int phases = 1;
  using shared = nothing_shared;
  struct arguments {
    const float* x;
    float* out;
    std::int64_t count;
  };
  TROUPE_BODY static void run(const place& at, const arguments& a, shared&,
                              int) {
    for (auto i = at.index(); i < a.count; i += at.count())
      a.out[i] = Function::of(a.x[i]);
  }
};

/// dx[i] = dout[i] * f'(x[i]), given out[i] = f(x[i])
template <class Function>
struct unary_gradient {
  static constexpr const char* name = Function::name;
  static constexpr int phases = 1;
  using shared = nothing_shared;
  struct arguments {
    const float* out;
    const float* dout;
    float* dx;
    std::int64_t count;
  };
  TROUPE_BODY static void run(const place& at, const arguments& a, shared&,
                              int) {
    for (auto i = at.index(); i < a.count; i += at.count())
      a.dx[i] = a.dout[i] * Function::slope(a.out[i]);
  }
};

/// dx[i] = dout[i] * f'(x[i]), given x[i]
template <class Function>
struct unary_gradient_at {
  static constexpr const char* name = Function::name;
  static constexpr int phases = 1;
  using shared = nothing_shared;
  struct arguments {
    const float* x;
    const float* dout;
    float* dx;
    std::int64_t count;
  };
  TROUPE_BODY static void run(const place& at, const arguments& a, shared&,
                              int) {
    for (auto i = at.index(); i < a.count; i += at.count())
      a.dx[i] = a.dout[i] * Function::slope_at(a.x[i]);
  }
};

/// out[i] = factor * x[i] + bias
struct scale {
  static constexpr const char* name = "scale";
  static constexpr int phases = 1;
  using shared = nothing_shared;
  struct arguments {
    const float* x;
    float* out;
    std::int64_t count;
    float factor;
    float bias;
  };
  TROUPE_BODY static void run(const place& at, const arguments& a, shared&,
                              int) {
    for (auto i = at.index(); i < a.count; i += at.count())
      a.out[i] = a.factor * a.x[i] + a.bias;
  }
};

/// out[i] = x[i] + y[i]
struct add {
  static constexpr const char* name = "add";
  static constexpr int phases = 1;
  using shared = nothing_shared;
  struct arguments {
    const float* x;
    const float* y;
    float* out;
    std::int64_t count;
  };
  TROUPE_BODY static void run(const place& at, const arguments& a, shared&,
                              int) {
    for (auto i = at.index(); i < a.count; i += at.count())
      a.out[i] = a.x[i] + a.y[i];
  }
};

/// out[i] = value
template <class T>
struct fill {
  static constexpr const char* name = "fill";
  static constexpr int phases = 1;
  using shared = nothing_shared;
  struct arguments {
    T* out;
    std::int64_t count;
    T value;
  };
  TROUPE_BODY static void run(const place& at, const arguments& a, shared&,
                              int) {
    for (auto i = at.index(); i < a.count; i += at.count())
      a.out[i] = a.value;
  }
};

// -- pairs of tensors ---------------------------------------------------------

/// How the elements of two operands are paired, by axis of the result. A step
/// of 0 repeats the operand.
struct pairing {
  static constexpr int most_axes = 8;
  int axes;
  std::int64_t extent[most_axes];
  std::int64_t x_step[most_axes];
  std::int64_t y_step[most_axes];

  /// Where element `i` of the result finds its operands.
  TROUPE_BODY void offsets(std::int64_t i, std::int64_t& x,
                           std::int64_t& y) const {
    x = y = 0;
    for (int axis = axes - 1; axis >= 0; --axis) {
      const auto at = i % extent[axis];
      i /= extent[axis];
      x += at * x_step[axis];
      y += at * y_step[axis];
    }
  }
};

/// out[i] = x + sign * y
template <class T>
struct add_repeated {
  static constexpr const char* name = "elementwise_add";
  static constexpr int phases = 1;
  using shared = nothing_shared;
  struct arguments {
    const T* x;
    const T* y;
    T* out;
    std::int64_t count;
    T sign;
    pairing pairs;
  };
  TROUPE_BODY static void run(const place& at, const arguments& a, shared&,
                              int) {
    for (auto i = at.index(); i < a.count; i += at.count()) {
      std::int64_t x, y;
      a.pairs.offsets(i, x, y);
      a.out[i] = a.x[x] + a.sign * a.y[y];
    }
  }
};

struct multiply_function {
  static constexpr const char* name = "elementwise_mul";
  TROUPE_BODY static float of(float x, float y) { return x * y; }
};

struct divide_function {
  static constexpr const char* name = "elementwise_div";
  TROUPE_BODY static float of(float x, float y) { return x / y; }
};

struct larger_function {
  static constexpr const char* name = "elementwise_max";
  TROUPE_BODY static float of(float x, float y) { return x > y ? x : y; }
};

/// out[i] = f(x, y)
template <class Function>
struct combine_repeated {
  static constexpr const char* name = Function::name;
  static constexpr int phases = 1;
  using shared = nothing_shared;
  struct arguments {
    const float* x;
    const float* y;
    float* out;
    std::int64_t count;
    pairing pairs;
  };
  TROUPE_BODY static void run(const place& at, const arguments& a, shared&,
                              int) {
    for (auto i = at.index(); i < a.count; i += at.count()) {
      std::int64_t x, y;
      a.pairs.offsets(i, x, y);
      a.out[i] = Function::of(a.x[x], a.y[y]);
    }
  }
};

struct twice_product_function {
  static constexpr const char* name = "squared_l2_norm_grad";
  TROUPE_BODY static float of(float x, float y) { return 2 * x * y; }
};

/// What an element of the result adds to the gradient of each operand.
struct multiply_gradient {
  struct x {
    static constexpr const char* name = "elementwise_mul_grad";
    TROUPE_BODY static float of(float, float b, float dout) { return dout * b; }
  };
  struct y {
    static constexpr const char* name = "elementwise_mul_grad";
    TROUPE_BODY static float of(float a, float, float dout) { return dout * a; }
  };
};

struct divide_gradient {
  struct x {
    static constexpr const char* name = "elementwise_div_grad";
    TROUPE_BODY static float of(float, float b, float dout) { return dout / b; }
  };
  struct y {
    static constexpr const char* name = "elementwise_div_grad";
    TROUPE_BODY static float of(float a, float b, float dout) {
      return -dout * (a / b) / b;
    }
  };
};

/// Of equal operands, the second one has the gradient.
struct larger_gradient {
  struct x {
    static constexpr const char* name = "elementwise_max_grad";
    TROUPE_BODY static float of(float a, float b, float dout) {
      return a > b ? dout : 0.0f;
    }
  };
  struct y {
    static constexpr const char* name = "elementwise_max_grad";
    TROUPE_BODY static float of(float a, float b, float dout) {
      return a <= b ? dout : 0.0f;
    }
  };
};

/// out[i] = f(x, y, dout[i])
template <class Function>
struct combine_gradient {
  static constexpr const char* name = Function::name;
  static constexpr int phases = 1;
  using shared = nothing_shared;
  struct arguments {
    const float* x;
    const float* y;
    const float* dout;
    float* out;
    std::int64_t count;
    pairing pairs;
  };
  TROUPE_BODY static void run(const place& at, const arguments& a, shared&,
                              int) {
    for (auto i = at.index(); i < a.count; i += at.count()) {
      std::int64_t x, y;
      a.pairs.offsets(i, x, y);
      a.out[i] = Function::of(a.x[x], a.y[y], a.dout[i]);
    }
  }
};

/// The gradient of a repeated operand: each element of `to` is the sum of the
/// elements of `dout` that it was used for, times `factor`. The axes are those
/// of the result, first those that the operand keeps, then those that repeat
/// it.
struct sum_repeated {
  static constexpr const char* name = "elementwise_add_grad";
  static constexpr int phases = 2;
  struct shared {
    float part[most_threads];
  };
  struct arguments {
    const float* dout;
    float* to;
    float factor;
    std::int64_t count;   ///< elements of `to`
    std::int64_t repeats; ///< of each
    int kept_axes;
    int axes;
    std::int64_t extent[pairing::most_axes];
    std::int64_t step[pairing::most_axes]; ///< in dout
  };

  /// Where in dout the element of number `i` of these axes is.
  TROUPE_BODY static std::int64_t offset(const arguments& a, std::int64_t i,
                                         int first, int last) {
    std::int64_t found = 0;
    for (int axis = last - 1; axis >= first; --axis) {
      found += i % a.extent[axis] * a.step[axis];
      i /= a.extent[axis];
    }
    return found;
  }

  // A block per element of the operand.
  TROUPE_BODY static void run(const place& at, const arguments& a, shared& s,
                              int phase) {
    if (at.block >= a.count)
      return;
    if (phase == 0) {
      const auto* from = a.dout + offset(a, at.block, 0, a.kept_axes);
      float sum = 0;
      for (std::int64_t i = at.thread; i < a.repeats; i += at.threads)
        sum += from[offset(a, i, a.kept_axes, a.axes)];
      s.part[at.thread] = sum;
    } else if (at.thread == 0) {
      float sum = 0;
      for (std::uint32_t i = 0; i < at.threads; ++i)
        sum += s.part[i];
      a.to[at.block] = a.factor * sum;
    }
  }
};

/// out[i] = factor * x, where x is repeated
struct scale_repeated {
  static constexpr const char* name = "reduce_mean_grad";
  static constexpr int phases = 1;
  using shared = nothing_shared;
  struct arguments {
    const float* x;
    float* out;
    std::int64_t count;
    float factor;
    pairing pairs; ///< of out with x, twice
  };
  TROUPE_BODY static void run(const place& at, const arguments& a, shared&,
                              int) {
    for (auto i = at.index(); i < a.count; i += at.count()) {
      std::int64_t x, same;
      a.pairs.offsets(i, x, same);
      a.out[i] = a.factor * a.x[x];
    }
  }
};

} // namespace troupe::cuda
