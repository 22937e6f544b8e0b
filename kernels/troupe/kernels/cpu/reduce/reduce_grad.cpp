// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/cpu/arguments.hpp>
#include <troupe/kernels/cpu/factories.hpp>
#include <troupe/kernels/cpu/reduce/reduction.hpp>

namespace troupe::cpu {

namespace {

// dX for one element of X, from X, the result it contributed to, and the
// result's gradient. The parameter is a factor of the gradient.

struct sum_gradient {
  template <class T>
  static T apply(T, T, T dout, T factor) {
    return dout * factor;
  }
};

struct extreme_gradient {
  template <class T>
  static T apply(T x, T out, T dout, T) {
    return x == out ? dout : T(0);
  }
};

struct product_gradient {
  template <class T>
  static T apply(T x, T out, T dout, T) {
    return dout * out / x;
  }
};

template <class Op>
void gradient(kernel_context& ctx, const reduction& r, double factor,
              bool reads_out) {
  const tensor x = ctx.input("X");
  tensor dout = ctx.input("Out@GRAD");
  if (dout.type() != x.type())
    dout = cast(dout, x.type(), ctx.on().memory());
  const tensor out = reads_out ? ctx.input("Out") : dout;
  if (dout.numel() != r.out.numel())
    require_shape("Out@GRAD", dout.dims(), r.out);
  if (out.numel() != r.out.numel())
    require_shape("Out", out.dims(), r.out);
  require_type("Out", out.type(), x.type());
  for_number_type<false>("X", x.type(), [&]<class T>(T) {
    tensor dx = ctx.output("X@GRAD", x.dims(), x.type());
    spread_all<Op>(r, dx.data<T>(), x.data<T>(), out.data<T>(),
                   values_in<T>(dout), static_cast<T>(factor));
  });
}

reduction reduction_of_x(const kernel_context& ctx) {
  return reduction_of(ctx, ctx.input("X").dims());
}

double inverse(std::int64_t count) {
  return count == 0 ? 0.0 : 1.0 / static_cast<double>(count);
}

void run_sum_gradient(kernel_context& ctx) {
  gradient<sum_gradient>(ctx, reduction_of_x(ctx), 1.0, false);
}

void run_mean_of_axes_gradient(kernel_context& ctx) {
  const reduction r = reduction_of_x(ctx);
  gradient<sum_gradient>(ctx, r, inverse(r.count), false);
}

void run_mean_gradient(kernel_context& ctx) {
  const reduction r = make_reduction(ctx.input("X").dims(), {}, true, false);
  gradient<sum_gradient>(ctx, r, inverse(r.count), false);
}

template <class Op>
void run_gradient(kernel_context& ctx) {
  gradient<Op>(ctx, reduction_of_x(ctx), 1.0, true);
}

} // namespace

void add_reduction_gradients(kernel_table& table) {
  const auto add = [&table](const char* op_type, kernel_function run) {
    table.add(op_type, device_kind::cpu, run);
  };
  add("mean_grad", run_mean_gradient);
  add("reduce_sum_grad", run_sum_gradient);
  add("reduce_mean_grad", run_mean_of_axes_gradient);
  add("reduce_prod_grad", run_gradient<product_gradient>);
  add("reduce_max_grad", run_gradient<extreme_gradient>);
  add("reduce_min_grad", run_gradient<extreme_gradient>);
}

} // namespace troupe::cpu
