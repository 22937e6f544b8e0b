// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/cpu/arguments.hpp>

#include <troupe/base/error.hpp>

#include <algorithm>
#include <string>
#include <vector>

namespace troupe::cpu {

namespace {

std::string quote(std::string_view slot, const shape& dims) {
  return std::string(slot) + " " + to_string(dims);
}

std::int64_t one_integer(const tensor& value, std::string_view slot) {
  if (value.numel() != 1)
    throw_shape(slot, value.dims(), "expected one element");
  return index_values(value, slot)[0];
}

struct dtype_number {
  std::int64_t number;
  dtype type;
};

constexpr dtype_number dtype_numbers[] = {
  {0, dtype::boolean},   {1, dtype::int16},   {2, dtype::int32},
  {3, dtype::int64},     {4, dtype::float16}, {5, dtype::float32},
  {6, dtype::float64},   {20, dtype::uint8},  {21, dtype::int8},
  {22, dtype::bfloat16},
};

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

void throw_shapes(std::string_view slot_a, const shape& a,
                  std::string_view slot_b, const shape& b,
                  std::string_view why) {
  throw error(errc::shape_mismatch, quote(slot_a, a) + " and "
                                      + quote(slot_b, b) + ": "
                                      + std::string(why));
}

void throw_shape(std::string_view slot, const shape& dims,
                 std::string_view why) {
  throw error(errc::shape_mismatch,
              quote(slot, dims) + ": " + std::string(why));
}

void require_shape(std::string_view slot, const shape& dims,
                   const shape& expected) {
  if (!(dims == expected))
    throw_shape(slot, dims, "expected " + to_string(expected));
}

void require_rank(std::string_view slot, const shape& dims, std::size_t rank) {
  if (dims.rank() != rank)
    throw_shape(slot, dims, "expected rank " + std::to_string(rank));
}

void throw_dtype(std::string_view slot, dtype actual,
                 std::string_view expected) {
  throw error(errc::dtype_mismatch, std::string(slot) + " is "
                                      + std::string(to_string(actual))
                                      + ", expected " + std::string(expected));
}

void require_type(std::string_view slot, dtype type, dtype expected) {
  if (type != expected)
    throw_dtype(slot, type, to_string(expected));
}

tensor float_input(const kernel_context& ctx, std::string_view slot,
                   std::size_t index) {
  tensor value = ctx.input(slot, index);
  if (value.type() != dtype::float32)
    throw_dtype(slot, value.type(), "float32");
  return value;
}

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

tensor float_output(const kernel_context& ctx, std::string_view slot,
                    const shape& dims, std::size_t index) {
  return ctx.output(slot, dims, dtype::float32, index);
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

std::vector<std::int64_t> integers(const tensor& value, std::string_view slot) {
  const index_values from(value, slot);
  std::vector<std::int64_t> all;
  for (std::int64_t i = 0; i < value.numel(); ++i)
    all.push_back(from[i]);
  return all;
}

std::int64_t integer_of(const kernel_context& ctx, std::string_view slot,
                        std::string_view name, std::int64_t otherwise) {
  if (!ctx.has_input(slot))
    return ctx.attributes().get_int(name, otherwise);
  return one_integer(ctx.input(slot), slot);
}

std::vector<std::int64_t> integers_of(const kernel_context& ctx,
                                      std::string_view list_slot,
                                      std::string_view slot,
                                      std::string_view name) {
  if (ctx.has_input(list_slot)) {
    std::vector<std::int64_t> all;
    for (std::size_t i = 0; i < ctx.num_inputs(list_slot); ++i)
      all.push_back(one_integer(ctx.input(list_slot, i), list_slot));
    return all;
  }
  if (ctx.has_input(slot))
    return integers(ctx.input(slot), slot);
  return ctx.attributes().get_ints(name, {});
}

void throw_index(const kernel_context& ctx, std::string_view slot,
                 std::int64_t index, std::int64_t extent) {
  throw error(errc::out_of_range,
              "index " + std::to_string(index) + " in " + std::string(slot)
                + " is not in [0, " + std::to_string(extent) + ")",
              {.variable = std::string(ctx.input_name(slot))});
}

void write_xshape(kernel_context& ctx, const shape& dims, dtype type) {
  if (!ctx.has_output("XShape"))
    return;
  std::vector<std::int64_t> extents{0};
  extents.insert(extents.end(), dims.begin(), dims.end());
  ctx.output("XShape", shape(extents), type);
}

std::size_t normal_axis(std::int64_t axis, std::size_t rank,
                        std::string_view slot) {
  const auto extents = static_cast<std::int64_t>(rank);
  if (axis < -extents || axis >= extents)
    throw error(errc::out_of_range, "axis " + std::to_string(axis) + " of "
                                      + std::string(slot) + " with rank "
                                      + std::to_string(rank));
  return static_cast<std::size_t>(axis < 0 ? axis + extents : axis);
}

index_values::index_values(const tensor& source, std::string_view slot) {
  if (source.type() == dtype::int64)
    wide_ = source.data<std::int64_t>();
  else if (source.type() == dtype::int32)
    narrow_ = source.data<std::int32_t>();
  else
    throw_dtype(slot, source.type(), "int64 or int32");
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

dtype dtype_attribute(const attribute_map& attributes, std::string_view name,
                      dtype otherwise) {
  const std::int64_t number = attributes.get_int(name, -1);
  if (number == -1)
    return otherwise;
  for (const auto& entry : dtype_numbers)
    if (entry.number == number)
      return entry.type;
  throw error(errc::invalid_argument, "attribute " + std::string(name)
                                        + " has no tensor element type for "
                                        + std::to_string(number));
}

} // namespace troupe::cpu
