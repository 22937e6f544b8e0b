// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/cpu/arguments.hpp>
#include <troupe/kernels/cpu/element_types.hpp>
#include <troupe/kernels/cpu/factories.hpp>
#include <troupe/kernels/plans/range_count.hpp>

#include <troupe/base/error.hpp>

#include <string>

namespace troupe::cpu {

namespace {

// The number in `slot`, which must have the type of Start.
template <class T>
T bound(const kernel_context& ctx, std::string_view slot) {
  const tensor value = ctx.input(slot);
  if (value.numel() != 1)
    throw_shape(slot, value.dims(), "expected one element");
  if (value.type() != dtype_of<T>)
    throw error(errc::dtype_mismatch, std::string(slot) + " is "
                                        + std::string(to_string(value.type()))
                                        + ", Start is "
                                        + std::string(to_string(dtype_of<T>)));
  return value.data<T>()[0];
}

template <class T>
void write_range(kernel_context& ctx) {
  const T start = bound<T>(ctx, "Start");
  const T step = bound<T>(ctx, "Step");
  const std::int64_t count = range_count(start, bound<T>(ctx, "End"), step);
  tensor out = ctx.output("Out", {count}, dtype_of<T>);
  T value = start; // added up step by step, as in Paddle
  for (T& element : out.values<T>()) {
    element = value;
    value = elementwise::add::apply(value, step); // also after the last element
  }
}

} // namespace

void run_range(kernel_context& ctx) {
  with_number(ctx.input("Start").type(), "Start",
              [&](auto zero) { write_range<decltype(zero)>(ctx); });
}

} // namespace troupe::cpu
