// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/cpu/arguments.hpp>
#include <troupe/kernels/cpu/elementwise/binary.hpp>
#include <troupe/kernels/cpu/factories.hpp>
#include <troupe/kernels/cpu/reduce/reduction.hpp>
#include <troupe/kernels/cpu/simd/vector_math.hpp>

#include <cmath>
#include <limits>

namespace troupe::cpu {

namespace {

// Folds over |x|: the largest, the smallest, and sums of f(|x|).

struct largest {
  template <class A>
  static A start() {
    return A(0);
  }
  template <class A, class T>
  static A fold(A total, T x, A) {
    const A magnitude = std::abs(x);
    return total < magnitude ? magnitude : total;
  }
  template <class A>
  static A join(A a, A b) {
    return a < b ? b : a;
  }
};

struct smallest {
  template <class A>
  static A start() {
    return std::numeric_limits<A>::infinity();
  }
  template <class A, class T>
  static A fold(A total, T x, A) {
    const A magnitude = std::abs(x);
    return magnitude < total ? magnitude : total;
  }
  template <class A>
  static A join(A a, A b) {
    return b < a ? b : a;
  }
};

struct plain_maximum {
  template <class A>
  static A start() {
    return -std::numeric_limits<A>::infinity();
  }
  template <class A, class T>
  static A fold(A total, T x, A) {
    return total < x ? x : total;
  }
  template <class A>
  static A join(A a, A b) {
    return a < b ? b : a;
  }
};

template <class Term>
struct sum_of {
  template <class A>
  static A start() {
    return A(0);
  }
  template <class A, class T>
  static A fold(A total, T x, A p) {
    return total + Term::of(x, p);
  }
  template <class A>
  static A join(A a, A b) {
    return a + b;
  }
};

struct non_zero {
  template <class T>
  static T of(T x, T) {
    return x != T(0) ? T(1) : T(0);
  }
};

struct magnitude {
  template <class T>
  static T of(T x, T) {
    return std::abs(x);
  }
};

struct squared {
  template <class T>
  static T of(T x, T) {
    return x * x;
  }
};

struct powered {
  template <class T>
  static T of(T x, T p) {
    return std::pow(std::abs(x), p);
  }
};

struct value {
  template <class T>
  static T of(T x, T) {
    return x;
  }
};

template <class T>
void take_root(tensor& out, T exponent) {
  for (T& each : out.values<T>())
    each = exponent == T(0.5) ? std::sqrt(each) : std::pow(each, exponent);
}

template <class T>
void p_norm(const reduction& r, tensor& out, const T* x, T p) {
  T* to = out.data<T>();
  if (p == T(0))
    return fold_all<sum_of<non_zero>>(r, to, x);
  if (std::isinf(p))
    return p > T(0) ? fold_all<largest>(r, to, x)
                    : fold_all<smallest>(r, to, x);
  if (p == T(1))
    return fold_all<sum_of<magnitude>>(r, to, x);
  if (p == T(2))
    fold_all<sum_of<squared>>(r, to, x);
  else
    fold_all<sum_of<powered>>(r, to, x, p);
  take_root<T>(out, T(1) / p);
}

template <class T>
T sign_of(T x) {
  return x > T(0) ? T(1) : (x < T(0) ? T(-1) : T(0));
}

// Gradients for one element of X; p is the order of the norm.

struct largest_gradient {
  template <class T>
  static T apply(T x, T out, T dout, T) {
    return std::abs(x) == out ? dout * sign_of(x) : T(0);
  }
};

struct magnitude_gradient {
  template <class T>
  static T apply(T x, T, T dout, T) {
    return dout * sign_of(x);
  }
};

struct euclidean_gradient {
  template <class T>
  static T apply(T x, T out, T dout, T epsilon) {
    return dout * x / (out + epsilon);
  }
};

// Paddle adds epsilon to the denominator.
struct powered_gradient {
  template <class T>
  static T apply(T x, T out, T dout, T p) {
    const T above = std::pow(std::abs(x), p - T(1));
    return dout * sign_of(x) * above / (std::pow(out, p - T(1)) + T(1e-12));
  }
};

struct zero_gradient {
  template <class T>
  static T apply(T, T, T, T) {
    return T(0);
  }
};

struct exponential_gradient {
  template <class T>
  static T apply(T x, T out, T dout, T) {
    return dout * exp_of(x - out);
  }
};

reduction p_norm_reduction(const kernel_context& ctx, const shape& x) {
  const auto& attributes = ctx.attributes();
  return make_reduction(x, {attributes.get_int("axis", -1)},
                        attributes.get_bool("asvector", false),
                        attributes.get_bool("keepdim", false));
}

reduction logsumexp_reduction(const kernel_context& ctx, const shape& x) {
  const auto& attributes = ctx.attributes();
  return make_reduction(x, attributes.get_ints("axis", {0}),
                        attributes.get_bool("reduce_all", false),
                        attributes.get_bool("keepdim", false));
}

void require_elements(const reduction& r, const shape& x) {
  if (r.count == 0)
    throw_shape("X", x, "has nothing to reduce");
}

void run_p_norm(kernel_context& ctx) {
  const tensor x = ctx.input("X");
  const reduction r = p_norm_reduction(ctx, x.dims());
  require_elements(r, x.dims());
  const float order = ctx.attributes().get_float("porder", 2.0f);
  for_number_type<false>("X", x.type(), [&]<class T>(T) {
    tensor out = ctx.output("Out", r.out, x.type());
    p_norm<T>(r, out, x.data<T>(), static_cast<T>(order));
  });
}

template <class Op>
void spread(kernel_context& ctx, const reduction& r, float p) {
  const tensor x = ctx.input("X");
  const tensor out = ctx.input("Out");
  const tensor dout = ctx.input("Out@GRAD");
  require_type("Out", out.type(), x.type());
  require_type("Out@GRAD", dout.type(), x.type());
  if (out.numel() != r.out.numel())
    require_shape("Out", out.dims(), r.out);
  if (dout.numel() != r.out.numel())
    require_shape("Out@GRAD", dout.dims(), r.out);
  for_number_type<false>("X", x.type(), [&]<class T>(T) {
    tensor dx = ctx.output("X@GRAD", x.dims(), x.type());
    spread_all<Op>(r, dx.data<T>(), x.data<T>(), out.data<T>(), dout.data<T>(),
                   static_cast<T>(p));
  });
}

void run_p_norm_gradient(kernel_context& ctx) {
  const reduction r = p_norm_reduction(ctx, ctx.input("X").dims());
  const float p = ctx.attributes().get_float("porder", 2.0f);
  if (p == 0.0f)
    return spread<zero_gradient>(ctx, r, p);
  if (std::isinf(p))
    return spread<largest_gradient>(ctx, r, p);
  if (p == 1.0f)
    return spread<magnitude_gradient>(ctx, r, p);
  if (p == 2.0f)
    return spread<euclidean_gradient>(ctx, r, 1e-12f);
  spread<powered_gradient>(ctx, r, p);
}

void run_frobenius_norm(kernel_context& ctx) {
  const tensor x = ctx.input("X");
  const reduction r = reduction_of(ctx, x.dims());
  for_number_type<false>("X", x.type(), [&]<class T>(T) {
    tensor out = ctx.output("Out", r.out, x.type());
    fold_all<sum_of<squared>>(r, out.data<T>(), x.data<T>());
    take_root<T>(out, T(0.5));
  });
}

void run_frobenius_norm_gradient(kernel_context& ctx) {
  spread<euclidean_gradient>(ctx, reduction_of(ctx, ctx.input("X").dims()),
                             0.0f);
}

// e^(x - most). If the largest element is infinite, so is the result.
struct shifted_exp {
  template <class T>
  static T apply(T most, T x) {
    return exp_of(x - (std::isinf(most) ? T(0) : most));
  }
};

void run_logsumexp(kernel_context& ctx) {
  const tensor x = ctx.input("X");
  const reduction r = logsumexp_reduction(ctx, x.dims());
  require_elements(r, x.dims());
  for_number_type<false>("X", x.type(), [&]<class T>(T) {
    auto& memory = ctx.on().memory();
    tensor most = tensor::make(memory, r.out, x.type());
    fold_all<plain_maximum>(r, most.data<T>(), x.data<T>());
    tensor terms = tensor::make(memory, x.dims(), x.type());
    apply_broadcast<shifted_exp>(r.plan, terms.data<T>(), values_in<T>(most),
                                 x.data<T>());
    tensor out = ctx.output("Out", r.out, x.type());
    fold_all<sum_of<value>>(r, out.data<T>(), values_in<T>(terms));
    const T* shift = most.data<T>();
    T* to = out.data<T>();
    for (std::int64_t i = 0; i < out.numel(); ++i)
      to[i] = std::log(to[i]) + (std::isinf(shift[i]) ? T(0) : shift[i]);
  });
}

void run_logsumexp_gradient(kernel_context& ctx) {
  spread<exponential_gradient>(
    ctx, logsumexp_reduction(ctx, ctx.input("X").dims()), 0.0f);
}

struct entry {
  const char* op_type;
  kernel_function run;
};

constexpr entry entries[] = {
  {"p_norm", run_p_norm},
  {"p_norm_grad", run_p_norm_gradient},
  {"frobenius_norm", run_frobenius_norm},
  {"frobenius_norm_grad", run_frobenius_norm_gradient},
  {"logsumexp", run_logsumexp},
  {"logsumexp_grad", run_logsumexp_gradient},
};

} // namespace

void add_norms(kernel_table& table) {
  for (const auto& [op_type, run] : entries)
    table.add(op_type, device_kind::cpu, run);
}

} // namespace troupe::cpu
