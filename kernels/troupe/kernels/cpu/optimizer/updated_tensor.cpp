// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/cpu/optimizer/updated_tensor.hpp>

#include <troupe/kernels/cpu/arguments.hpp>
#include <troupe/kernels/cpu/conv/filter_blocks.hpp>

namespace troupe::cpu {

namespace {

const tensor* held_tensor(const variable& var) {
  return var.is_tensor() && var.as_tensor() ? &var.as_tensor() : nullptr;
}

/// The first tensor in input Grad; null if there is none.
const tensor* first_gradient(const kernel_context& ctx) {
  for (std::size_t i = 0; i < ctx.num_inputs("Grad"); ++i)
    if (const auto* held = held_tensor(ctx.input_variable("Grad", i)))
      return held;
  return nullptr;
}

} // namespace

std::shared_ptr<const layout> update_layout(const kernel_context& ctx) {
  const tensor* gradient = first_gradient(ctx);
  const tensor* parameter = held_tensor(ctx.input_variable("Param"));
  const auto is_filter = gradient && parameter
                         && lies_in_filter_blocks(*gradient)
                         && gradient->dims() == parameter->dims();
  return is_filter ? gradient->format() : nullptr;
}

tensor input_in(const kernel_context& ctx, std::string_view slot,
                const std::shared_ptr<const layout>& format,
                std::size_t index) {
  const tensor value = filter_input(ctx, slot, index);
  if (!format)
    return value.is_plain() ? value : float_input(ctx, slot, index);
  if (value.format() && value.format()->equals(*format))
    return value;
  return in_filter_blocks(float_input(ctx, slot, index), slot, format,
                          ctx.on().memory());
}

updated_tensor updated(const kernel_context& ctx, std::string_view slot,
                       std::string_view out_slot,
                       const std::shared_ptr<const layout>& format) {
  const tensor in = input_in(ctx, slot, format);
  const variable& from = ctx.input_variable(slot);
  variable& to = ctx.output_variable(out_slot);
  // had another layout
  if (&from == &to && from.as_tensor().raw() != in.raw()) {
    to.set(in);
    return {in, in};
  }
  return {in, stored_output(ctx, out_slot, in.dims(), dtype::float32, format)};
}

} // namespace troupe::cpu
