// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/cpu/arguments.hpp>

#include <troupe/base/error.hpp>

#include <algorithm>
#include <string>
#include <vector>

namespace troupe::cpu {

namespace {

bool same_format(const tensor& a, const std::shared_ptr<const layout>& b) {
  const auto& held = a.format();
  return held == b || (held && b && held->equals(*b));
}

// Equal layouts have equal shapes, and a tensor with a layout is float32 to its
// readers.
bool can_reuse(const variable& var,
               const std::shared_ptr<const layout>& format) {
  return var.is_tensor() && var.as_tensor()
         && same_format(var.as_tensor(), format)
         && !var.as_tensor().is_shared();
}

} // namespace

tensor vector_input(const kernel_context& ctx, std::string_view slot,
                    std::int64_t count) {
  tensor value = float_input(ctx, slot);
  if (value.numel() != count)
    require_shape(slot, value.dims(), {count});
  return value;
}

tensor vector_input(const kernel_context& ctx, std::string_view slot,
                    std::int64_t count, float otherwise) {
  if (ctx.has_input(slot))
    return vector_input(ctx, slot, count);
  tensor value = ctx.scratch(count);
  std::fill_n(value.data<float>(), count, otherwise);
  return value;
}

tensor stored_output(const kernel_context& ctx, std::string_view slot,
                     const shape& dims, dtype type,
                     std::shared_ptr<const layout> format) {
  if (!format)
    return ctx.output(slot, dims, type);
  variable& var = ctx.output_variable(slot);
  if (can_reuse(var, format)) {
    tensor held = var.as_tensor();
    held.set_levels(nullptr);
    var.as_tensor().set_levels(nullptr);
    return held;
  }
  tensor made(dims, type, ctx.on().memory().allocate(format->bytes()), format);
  var.set(made);
  return made;
}

tensor output_like(const kernel_context& ctx, std::string_view slot,
                   const tensor& like) {
  return stored_output(ctx, slot, like.dims(), like.type(), like.format());
}

float scalar_input(const kernel_context& ctx, std::string_view slot) {
  const tensor value = float_input(ctx, slot);
  if (value.numel() != 1)
    throw_shape(slot, value.dims(), "expected one element");
  return value.data<float>()[0];
}

float scalar_input(const kernel_context& ctx, std::string_view slot,
                   float otherwise) {
  return ctx.has_input(slot) ? scalar_input(ctx, slot) : otherwise;
}

bool flag_input(const kernel_context& ctx, std::string_view slot) {
  if (!ctx.has_input(slot))
    return false;
  const tensor value = ctx.input(slot);
  if (value.type() != dtype::boolean)
    throw_dtype(slot, value.type(), "bool");
  if (value.numel() != 1)
    throw_shape(slot, value.dims(), "expected one element");
  return value.data<bool>()[0];
}

void throw_index(const kernel_context& ctx, std::string_view slot,
                 std::int64_t index, std::int64_t extent) {
  throw error(errc::out_of_range,
              "index " + std::to_string(index) + " in " + std::string(slot)
                + " is not in [0, " + std::to_string(extent) + ")",
              {.variable = std::string(ctx.input_name(slot))});
}

double number_of(const tensor& value, std::string_view slot) {
  if (value.numel() != 1)
    throw_shape(slot, value.dims(), "expected one element");
  if (value.type() == dtype::boolean)
    return value.data<bool>()[0] ? 1.0 : 0.0;
  double number = 0.0;
  for_number_type(slot, value.type(), [&]<class T>(T) {
    number = static_cast<double>(value.data<T>()[0]);
  });
  return number;
}

double number_input(const kernel_context& ctx, std::string_view slot,
                    std::string_view name, float otherwise) {
  if (ctx.has_input(slot))
    return number_of(ctx.input(slot), slot);
  return static_cast<double>(ctx.attributes().get_float(name, otherwise));
}

} // namespace troupe::cpu
