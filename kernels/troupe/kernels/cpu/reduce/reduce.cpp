// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/cpu/arguments.hpp>
#include <troupe/kernels/cpu/factories.hpp>
#include <troupe/kernels/cpu/reduce/reduction.hpp>
#include <troupe/kernels/cpu/simd/vector_ops.hpp>

#include <limits>

namespace troupe::cpu {

namespace {

struct maximum {
  template <class A>
  static A start() {
    return std::numeric_limits<A>::has_infinity
             ? -std::numeric_limits<A>::infinity()
             : std::numeric_limits<A>::lowest();
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

struct minimum {
  template <class A>
  static A start() {
    return std::numeric_limits<A>::has_infinity
             ? std::numeric_limits<A>::infinity()
             : std::numeric_limits<A>::max();
  }
  template <class A, class T>
  static A fold(A total, T x, A) {
    return x < total ? x : total;
  }
  template <class A>
  static A join(A a, A b) {
    return b < a ? b : a;
  }
};

// Integers are multiplied as unsigned, so that they wrap around.
struct product {
  template <class A>
  static A start() {
    return A(1);
  }
  template <class A, class T>
  static A fold(A total, T x, A) {
    return total * static_cast<A>(x);
  }
  template <class A>
  static A join(A a, A b) {
    return a * b;
  }
};

struct all_true {
  template <class A>
  static A start() {
    return true;
  }
  template <class A, class T>
  static A fold(A total, T x, A) {
    return total && x != T(0);
  }
  template <class A>
  static A join(A a, A b) {
    return a && b;
  }
};

struct any_true {
  template <class A>
  static A start() {
    return false;
  }
  template <class A, class T>
  static A fold(A total, T x, A) {
    return total || x != T(0);
  }
  template <class A>
  static A join(A a, A b) {
    return a || b;
  }
};

template <class Fold>
void run_extreme(kernel_context& ctx) {
  const tensor x = ctx.input("X");
  const reduction r = reduction_of(ctx, x.dims());
  if (r.count == 0)
    throw_shape("X", x.dims(), "has nothing to reduce");
  for_number_type("X", x.type(), [&]<class T>(T) {
    tensor out = ctx.output("Out", r.out, x.type());
    fold_all<Fold>(r, out.data<T>(), x.data<T>());
  });
}

template <class T>
struct unsigned_of {
  using type = T;
};
template <>
struct unsigned_of<std::int32_t> {
  using type = std::uint32_t;
};
template <>
struct unsigned_of<std::int64_t> {
  using type = std::uint64_t;
};

void run_product(kernel_context& ctx) {
  const tensor x = ctx.input("X");
  const reduction r = reduction_of(ctx, x.dims());
  for_number_type("X", x.type(), [&]<class T>(T) {
    using sum_type = typename unsigned_of<T>::type;
    tensor out = ctx.output("Out", r.out, x.type());
    fold_all<product>(r, reinterpret_cast<sum_type*>(out.data<T>()),
                      x.data<T>());
  });
}

template <class Fold>
void run_logical(kernel_context& ctx) {
  const tensor x = ctx.input("X");
  const reduction r = reduction_of(ctx, x.dims());
  tensor out = ctx.output("Out", r.out, dtype::boolean);
  bool* to = out.data<bool>();
  if (x.type() == dtype::boolean)
    return fold_all<Fold>(r, to, x.data<bool>());
  for_number_type("X", x.type(),
                  [&]<class T>(T) { fold_all<Fold>(r, to, x.data<T>()); });
}

// Sums of integers and booleans are int64 unless out_dtype says otherwise.
dtype sum_type(const kernel_context& ctx, dtype x) {
  const bool narrow = x == dtype::boolean || x == dtype::int32;
  return dtype_attribute(ctx.attributes(), "out_dtype",
                         narrow ? dtype::int64 : x);
}

template <class T>
void sum_to(const reduction& r, const tensor& x, tensor& out) {
  reduce_to_x(r.plan, x.data<T>(), T(1), out.data<T>(), out.numel());
}

void run_sum_of_axes(kernel_context& ctx) {
  tensor x = ctx.input("X");
  const dtype type = sum_type(ctx, x.type());
  if (type != x.type())
    x = cast(x, type, ctx.on().memory());
  const reduction r = reduction_of(ctx, x.dims());
  for_number_type("X", type, [&]<class T>(T) {
    tensor out = ctx.output("Out", r.out, type);
    sum_to<T>(r, x, out);
  });
}

template <class T>
void divide_by(tensor& value, std::int64_t count) {
  for (T& each : value.values<T>())
    each = count == 0 ? T(0) : static_cast<T>(each / static_cast<T>(count));
}

void average(kernel_context& ctx, const reduction& r) {
  const tensor x = ctx.input("X");
  for_number_type("X", x.type(), [&]<class T>(T) {
    tensor out = ctx.output("Out", r.out, x.type());
    sum_to<T>(r, x, out);
    divide_by<T>(out, r.count);
  });
}

void run_mean_of_axes(kernel_context& ctx) {
  average(ctx, reduction_of(ctx, ctx.input("X").dims()));
}

void run_mean(kernel_context& ctx) {
  average(ctx, make_reduction(ctx.input("X").dims(), {}, true, false));
}

} // namespace

void add_reductions(kernel_table& table) {
  const auto add = [&table](const char* op_type, kernel_function run) {
    table.add(op_type, device_kind::cpu, run);
  };
  add("mean", run_mean);
  add("reduce_sum", run_sum_of_axes);
  add("reduce_mean", run_mean_of_axes);
  add("reduce_prod", run_product);
  add("reduce_max", run_extreme<maximum>);
  add("reduce_min", run_extreme<minimum>);
  add("reduce_all", run_logical<all_true>);
  add("reduce_any", run_logical<any_true>);
}

} // namespace troupe::cpu
