// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/cpu/updated_tensor.hpp>

#include <troupe/kernels/cpu/arguments.hpp>
#include <troupe/kernels/cpu/filter_blocks.hpp>

namespace troupe::cpu {

namespace {

/// The tensor that an input holds; null if it holds no tensor.
const tensor* held_tensor(const kernel_context& ctx, std::string_view slot) {
  const variable& var = ctx.input_variable(slot);
  return var.is_tensor() && var.as_tensor() ? &var.as_tensor() : nullptr;
}

tensor input_in(const kernel_context& ctx, std::string_view slot,
                const std::shared_ptr<const layout>& format) {
  const tensor value = filter_input(ctx, slot);
  if (!format)
    return value.is_plain() ? value : float_input(ctx, slot);
  if (value.format() && value.format()->equals(*format))
    return value;
  return in_filter_blocks(float_input(ctx, slot), slot, format,
                          ctx.on().memory());
}

} // namespace

std::shared_ptr<const layout> update_layout(const kernel_context& ctx) {
  const tensor* gradient = held_tensor(ctx, "Grad");
  const tensor* parameter = held_tensor(ctx, "Param");
  const auto is_filter = gradient && parameter
                         && lies_in_filter_blocks(*gradient)
                         && gradient->dims() == parameter->dims();
  return is_filter ? gradient->format() : nullptr;
}

updated_tensor updated(const kernel_context& ctx, std::string_view slot,
                       std::string_view out_slot,
                       const std::shared_ptr<const layout>& format) {
  const tensor in = input_in(ctx, slot, format);
  const variable& from = ctx.input_variable(slot);
  variable& to = ctx.output_variable(out_slot);
  if (&from == &to && from.as_tensor().raw() != in.raw()) { // lay otherwise
    to.set(in);
    return {in, in};
  }
  return {in, stored_output(ctx, out_slot, in.dims(), dtype::float32, format)};
}

} // namespace troupe::cpu
