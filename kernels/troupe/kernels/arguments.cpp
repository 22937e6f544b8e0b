// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/arguments.hpp>

#include <troupe/base/error.hpp>

#include <string>
#include <vector>

namespace troupe {

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

tensor float_output(const kernel_context& ctx, std::string_view slot,
                    const shape& dims, std::size_t index) {
  return ctx.output(slot, dims, dtype::float32, index);
}

index_values::index_values(const tensor& source, std::string_view slot) {
  if (source.type() == dtype::int64)
    wide_ = source.data<std::int64_t>();
  else if (source.type() == dtype::int32)
    narrow_ = source.data<std::int32_t>();
  else
    throw_dtype(slot, source.type(), "int64 or int32");
}

std::vector<std::int64_t> integers(const tensor& value, std::string_view slot) {
  const index_values from(value, slot);
  std::vector<std::int64_t> all;
  for (std::int64_t i = 0; i < value.numel(); ++i)
    all.push_back(from[i]);
  return all;
}

namespace {

/// The host of a device with memory of its own cannot read the input.
void require_host_memory(const kernel_context& ctx, std::string_view slot) {
  if (!has_host_memory(ctx.on().id().kind))
    throw error(errc::unsupported_op,
                "the numbers in " + std::string(slot)
                  + " lie in memory that the host cannot read");
}

} // namespace

std::int64_t integer_of(const kernel_context& ctx, std::string_view slot,
                        std::string_view name, std::int64_t otherwise) {
  if (!ctx.has_input(slot))
    return ctx.attributes().get_int(name, otherwise);
  require_host_memory(ctx, slot);
  return one_integer(ctx.input(slot), slot);
}

std::vector<std::int64_t> integers_of(const kernel_context& ctx,
                                      std::string_view list_slot,
                                      std::string_view slot,
                                      std::string_view name) {
  if (ctx.has_input(list_slot)) {
    require_host_memory(ctx, list_slot);
    std::vector<std::int64_t> all;
    for (std::size_t i = 0; i < ctx.num_inputs(list_slot); ++i)
      all.push_back(one_integer(ctx.input(list_slot, i), list_slot));
    return all;
  }
  if (ctx.has_input(slot)) {
    require_host_memory(ctx, slot);
    return integers(ctx.input(slot), slot);
  }
  return ctx.attributes().get_ints(name, {});
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

bool has_channels_last(const attribute_map& attributes, std::string_view name) {
  const auto layout = attributes.get_string(name, "NCHW");
  if (layout == "NHWC")
    return true;
  if (layout == "NCHW" || layout == "AnyLayout")
    return false;
  throw error(errc::invalid_argument, "attribute " + std::string(name) + " is "
                                        + layout + ", not NCHW or NHWC");
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

} // namespace troupe
