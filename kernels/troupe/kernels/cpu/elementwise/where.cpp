// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/cpu/arguments.hpp>
#include <troupe/kernels/cpu/element_types.hpp>
#include <troupe/kernels/cpu/factories.hpp>

#include <troupe/base/error.hpp>

#include <cstring>
#include <vector>

namespace troupe::cpu {

namespace {

// Condition as bytes; throws unless it is boolean.
const std::uint8_t* condition_of(const tensor& condition) {
  if (condition.type() != dtype::boolean)
    throw error(errc::dtype_mismatch,
                "Condition is " + std::string(to_string(condition.type()))
                  + ", expected bool");
  return reinterpret_cast<const std::uint8_t*>(condition.raw());
}

template <class T>
void choose(T* out, const std::uint8_t* condition, const T* x, const T* y,
            std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i)
    out[i] = condition[i] != 0 ? x[i] : y[i];
}

// The gradient of the operand that is chosen where Condition is `chosen`.
template <class T>
void keep(T* dx, const std::uint8_t* condition, bool chosen, const T* dout,
          std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i)
    dx[i] = (condition[i] != 0) == chosen ? dout[i] : T{};
}

void operand_gradient(kernel_context& ctx, std::string_view slot,
                      const tensor& condition, bool chosen,
                      const tensor& dout) {
  if (!ctx.has_output(slot))
    return;
  tensor dx = ctx.output(slot, dout.dims(), dout.type());
  with_width(dout.type(), [&](auto zero) {
    using element = decltype(zero);
    keep(reinterpret_cast<element*>(dx.raw()), condition_of(condition), chosen,
         reinterpret_cast<const element*>(dout.raw()), dout.numel());
  });
}

} // namespace

void run_where(kernel_context& ctx) {
  const tensor condition = ctx.input("Condition");
  const tensor x = ctx.input("X");
  const tensor y = ctx.input("Y");
  require_shape("Condition", condition.dims(), x.dims());
  require_shape("Y", y.dims(), x.dims());
  if (x.type() != y.type())
    throw error(errc::dtype_mismatch, "X and Y of where differ in dtype");
  tensor out = ctx.output("Out", x.dims(), x.type());
  with_width(x.type(), [&](auto zero) {
    using element = decltype(zero);
    choose(reinterpret_cast<element*>(out.raw()), condition_of(condition),
           reinterpret_cast<const element*>(x.raw()),
           reinterpret_cast<const element*>(y.raw()), x.numel());
  });
}

void run_where_grad(kernel_context& ctx) {
  const tensor condition = ctx.input("Condition");
  const tensor dout = ctx.input("Out@GRAD");
  require_shape("Out@GRAD", dout.dims(), condition.dims());
  operand_gradient(ctx, "X@GRAD", condition, true, dout);
  operand_gradient(ctx, "Y@GRAD", condition, false, dout);
}

void run_where_index(kernel_context& ctx) {
  const tensor given = ctx.input("Condition");
  const tensor condition = given.type() == dtype::boolean
                             ? given
                             : cast(given, dtype::boolean, ctx.on().memory());
  const std::uint8_t* holds = condition_of(condition);
  std::vector<std::int64_t> found;
  for (std::int64_t i = 0; i < condition.numel(); ++i)
    if (holds[i] != 0)
      found.push_back(i);
  const shape& dims = condition.dims();
  const auto rank = static_cast<std::int64_t>(dims.rank());
  tensor out = ctx.output(
    "Out", {static_cast<std::int64_t>(found.size()), rank}, dtype::int64);
  std::int64_t* row = out.data<std::int64_t>();
  for (std::int64_t at : found) {
    for (std::size_t axis = dims.rank(); axis-- > 0; at /= dims[axis])
      row[axis] = at % dims[axis];
    row += rank;
  }
}

} // namespace troupe::cpu
