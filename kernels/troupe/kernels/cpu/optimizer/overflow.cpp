// SPDX-License-Identifier: Apache-2.0
// Fluid's checks of a whole tensor: one answer, not one per element.
#include <troupe/kernels/cpu/arguments.hpp>
#include <troupe/kernels/cpu/factories.hpp>

#include <algorithm>
#include <cmath>
#include <type_traits>

namespace troupe::cpu {

namespace {

tensor values_of(const kernel_context& ctx) {
  const variable& x = ctx.input_variable("X");
  return x.is_rows() ? x.as_rows().values : ctx.input("X");
}

// Whether `test` holds for any element. Integers are finite.
template <class Test>
bool any_element(const kernel_context& ctx, Test test) {
  const tensor x = values_of(ctx);
  bool found = false;
  for_number_type("X", x.type(), [&]<class T>(T) {
    if constexpr (std::is_floating_point_v<T>)
      found = std::ranges::any_of(x.values<T>(), test);
  });
  return found;
}

void answer(kernel_context& ctx, bool value) {
  ctx.output("Out", {1}, dtype::boolean).data<bool>()[0] = value;
}

} // namespace

void run_isfinite(kernel_context& ctx) {
  answer(ctx,
         !any_element(ctx, [](auto value) { return !std::isfinite(value); }));
}

void run_isinf(kernel_context& ctx) {
  answer(ctx, any_element(ctx, [](auto value) { return std::isinf(value); }));
}

void run_isnan(kernel_context& ctx) {
  answer(ctx, any_element(ctx, [](auto value) { return std::isnan(value); }));
}

} // namespace troupe::cpu
