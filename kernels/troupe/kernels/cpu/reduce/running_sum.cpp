// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/cpu/arguments.hpp>
#include <troupe/kernels/cpu/elementwise/elementwise_ops.hpp>
#include <troupe/kernels/cpu/factories.hpp>

namespace troupe::cpu {

namespace {

struct direction {
  bool exclusive = false; ///< an element does not count in its own sum
  bool reverse = false;   ///< sums start at the end
};

direction direction_of(const attribute_map& attributes) {
  return {attributes.get_bool("exclusive", false),
          attributes.get_bool("reverse", false)};
}

// Row by row of the inner axes, so that memory is read in order.
template <class T>
void sum_along(const axis_view& v, direction d, T* out, const T* x) {
  using elementwise::add;
  for (std::int64_t o = 0; o < v.outer; ++o)
    for (std::int64_t step = 0; step < v.extent; ++step) {
      const std::int64_t e = d.reverse ? v.extent - 1 - step : step;
      const std::int64_t at = (o * v.extent + e) * v.inner;
      const std::int64_t before = d.reverse ? at + v.inner : at - v.inner;
      for (std::int64_t i = 0; i < v.inner; ++i) {
        const T sum = step == 0 ? T(0) : out[before + i];
        const T next =
          d.exclusive ? (step == 0 ? T(0) : x[before + i]) : x[at + i];
        out[at + i] = add::apply(sum, next);
      }
    }
}

axis_view view_of(const kernel_context& ctx, const shape& dims) {
  const auto& attributes = ctx.attributes();
  if (attributes.get_bool("flatten", false) || dims.rank() == 0)
    return {shape{dims.numel()}, 0};
  return {dims, normal_axis(attributes.get_int("axis", -1), dims.rank(), "X")};
}

void write(kernel_context& ctx, const tensor& x, std::string_view slot,
           const shape& dims, const axis_view& v, direction d) {
  for_number_type("X", x.type(), [&]<class T>(T) {
    tensor out = ctx.output(slot, dims, x.type());
    // An exclusive sum reads elements that it has overwritten, if Out is X.
    const tensor from = out.raw() == x.raw() ? clone(x, ctx.on().memory()) : x;
    sum_along<T>(v, d, out.data<T>(), from.data<T>());
  });
}

} // namespace

void run_cumsum(kernel_context& ctx) {
  const tensor x = ctx.input("X");
  const bool flat = ctx.attributes().get_bool("flatten", false);
  write(ctx, x, "Out", flat ? shape{x.numel()} : x.dims(),
        view_of(ctx, x.dims()), direction_of(ctx.attributes()));
}

// The running sums of dOut in the opposite direction.
void run_cumsum_grad(kernel_context& ctx) {
  const shape dims = ctx.input("X").dims();
  const tensor dout = ctx.input("Out@GRAD");
  if (dout.numel() != dims.numel())
    require_shape("Out@GRAD", dout.dims(), dims);
  direction d = direction_of(ctx.attributes());
  d.reverse = !d.reverse;
  write(ctx, dout, "X@GRAD", dims, view_of(ctx, dims), d);
}

void run_increment(kernel_context& ctx) {
  const tensor x = ctx.input("X");
  if (x.numel() != 1)
    throw_shape("X", x.dims(), "expected one element");
  const double step =
    static_cast<double>(ctx.attributes().get_float("step", 1.0f));
  for_number_type("X", x.type(), [&]<class T>(T) {
    const T value = x.data<T>()[0];
    tensor out = ctx.output("Out", x.dims(), x.type());
    out.data<T>()[0] = elementwise::add::apply(value, number_as<T>(step));
  });
}

} // namespace troupe::cpu
