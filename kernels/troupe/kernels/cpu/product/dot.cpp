// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/cpu/arguments.hpp>
#include <troupe/kernels/cpu/factories.hpp>

#include <concepts>
#include <type_traits>
#include <vector>

namespace troupe::cpu {

namespace {

// The dot product of two rows; integers wrap around.
template <class T>
T row_product(const T* a, const T* b, std::int64_t n) {
  using sum_type =
    typename std::conditional_t<std::integral<T>, std::make_unsigned<T>,
                                std::type_identity<T>>::type;
  sum_type total = 0;
  for (std::int64_t i = 0; i < n; ++i)
    total += static_cast<sum_type>(a[i]) * static_cast<sum_type>(b[i]);
  return static_cast<T>(total);
}

struct operands {
  tensor x;
  tensor y;
  shape out;
  std::int64_t width = 0;
};

operands operands_of(const kernel_context& ctx) {
  operands o{ctx.input("X"), ctx.input("Y"), {}, 0};
  require_type("Y", o.y.type(), o.x.type());
  require_shape("Y", o.y.dims(), o.x.dims());
  const shape& dims = o.x.dims();
  if (dims.rank() == 0)
    throw_shape("X", dims, "expected rank 1 at least");
  o.out = shape(dims.dims().first(dims.rank() - 1));
  o.width = dims.dim(-1);
  return o;
}

template <class T>
void write_gradient(kernel_context& ctx, std::string_view slot,
                    const operands& o, const tensor& other,
                    const tensor& dout) {
  if (!ctx.has_output(slot))
    return;
  tensor dx = ctx.output(slot, o.x.dims(), o.x.type());
  T* to = dx.data<T>();
  for (std::int64_t row = 0; row < dout.numel(); ++row)
    for (std::int64_t i = row * o.width; i < (row + 1) * o.width; ++i)
      to[i] = dout.data<T>()[row] * other.data<T>()[i];
}

} // namespace

void run_dot(kernel_context& ctx) {
  const operands o = operands_of(ctx);
  for_number_type("X", o.x.type(), [&]<class T>(T) {
    tensor out = ctx.output("Out", o.out, o.x.type());
    for (std::int64_t row = 0; row < out.numel(); ++row)
      out.data<T>()[row] = row_product(o.x.data<T>() + row * o.width,
                                       o.y.data<T>() + row * o.width, o.width);
  });
}

void run_dot_grad(kernel_context& ctx) {
  const operands o = operands_of(ctx);
  const tensor dout = ctx.input("Out@GRAD");
  require_type("Out@GRAD", dout.type(), o.x.type());
  if (dout.numel() != o.out.numel())
    require_shape("Out@GRAD", dout.dims(), o.out);
  for_number_type<false>("X", o.x.type(), [&]<class T>(T) {
    write_gradient<T>(ctx, "X@GRAD", o, o.y, dout);
    write_gradient<T>(ctx, "Y@GRAD", o, o.x, dout);
  });
}

} // namespace troupe::cpu
