// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/ref/array.hpp>

#include <troupe/base/assert.hpp>

#include <cmath>
#include <limits>
#include <type_traits>

namespace troupe::ref {

namespace {

/// Calls `visit(T{})` with the element type of `type`.
template <class Visitor>
void with_element_type(dtype type, Visitor visit) {
  switch (type) {
  case dtype::float32: return visit(float{});
  case dtype::float64: return visit(double{});
  case dtype::float16: return visit(float16{});
  case dtype::bfloat16: return visit(bfloat16{});
  case dtype::int8: return visit(std::int8_t{});
  case dtype::uint8: return visit(std::uint8_t{});
  case dtype::int16: return visit(std::int16_t{});
  case dtype::int32: return visit(std::int32_t{});
  case dtype::int64: return visit(std::int64_t{});
  case dtype::boolean: return visit(bool{});
  }
}

template <class T>
double to_double(T value) {
  if constexpr (std::is_same_v<T, float16> || std::is_same_v<T, bfloat16>)
    return double{static_cast<float>(value)};
  else
    return static_cast<double>(value);
}

/// Values beyond an integer's range saturate, and NaN becomes 0.
template <class T>
T to_integer(double value) {
  using limits = std::numeric_limits<T>;
  if (std::isnan(value))
    return 0;
  if (value <= static_cast<double>(limits::min()))
    return limits::min();
  if (value >= static_cast<double>(limits::max()))
    return limits::max();
  return static_cast<T>(value);
}

template <class T>
T from_double(double value) {
  if constexpr (std::is_same_v<T, float16> || std::is_same_v<T, bfloat16>)
    return T(static_cast<float>(value));
  else if constexpr (std::is_same_v<T, bool>)
    return value != 0;
  else if constexpr (std::is_integral_v<T>)
    return to_integer<T>(value);
  else
    return static_cast<T>(value);
}

} // namespace

array read(const tensor& source) {
  array result(source.dims());
  with_element_type(source.type(), [&]<class T>(T) {
    auto from = source.values<T>();
    for (std::size_t i = 0; i < from.size(); ++i)
      result.values[i] = to_double(from[i]);
  });
  return result;
}

void write(const array& source, tensor& target) {
  TROUPE_ASSERT(source.size() == target.numel());
  with_element_type(target.type(), [&]<class T>(T) {
    auto to = target.values<T>();
    for (std::size_t i = 0; i < to.size(); ++i)
      to[i] = from_double<T>(source.values[i]);
  });
}

array input(const kernel_context& ctx, std::string_view slot,
            std::size_t index) {
  return read(ctx.input(slot, index));
}

dtype input_type(const kernel_context& ctx, std::string_view slot,
                 std::size_t index) {
  return ctx.input(slot, index).type();
}

std::vector<std::int64_t> input_indices(const kernel_context& ctx,
                                        std::string_view slot) {
  std::vector<std::int64_t> indices;
  for (double value : input(ctx, slot).values)
    indices.push_back(static_cast<std::int64_t>(value));
  return indices;
}

double input_scalar(const kernel_context& ctx, std::string_view slot) {
  auto value = input(ctx, slot);
  require(value.size() == 1, errc::shape_mismatch,
          std::string(slot) + " must have one element, not "
            + to_string(value.dims));
  return value[0];
}

void output(const kernel_context& ctx, std::string_view slot,
            const array& value, dtype type, std::size_t index) {
  auto target = ctx.output(slot, value.dims, type, index);
  write(value, target);
}

void output_if_present(const kernel_context& ctx, std::string_view slot,
                       const array& value, dtype type) {
  if (ctx.has_output(slot))
    output(ctx, slot, value, type);
}

void output_rows(const kernel_context& ctx, std::string_view slot,
                 std::vector<std::int64_t> rows, std::int64_t height,
                 const array& values, dtype type) {
  auto target = tensor::make(ctx.on().memory(), values.dims, type);
  write(values, target);
  ctx.output_variable(slot).set(
    selected_rows{std::move(rows), height, std::move(target)});
}

array densify(const selected_rows& rows) {
  auto values = read(rows.values);
  auto dims = values.dims;
  dims[0] = rows.height;
  array result(dims);
  const auto width = dims.numel(1, dims.rank());
  for (std::size_t r = 0; r < rows.rows.size(); ++r)
    for (std::int64_t i = 0; i < width; ++i)
      result[rows.rows[r] * width + i] +=
        values[static_cast<std::int64_t>(r) * width + i];
  return result;
}

void require_same(std::string_view what, const shape& actual,
                  const shape& expected) {
  require(actual == expected, errc::shape_mismatch,
          std::string(what) + " has shape " + to_string(actual) + ", expected "
            + to_string(expected));
}

std::size_t resolve_axis(std::int64_t axis, std::size_t rank) {
  const auto count = static_cast<std::int64_t>(rank);
  require(axis >= -count && axis < count, errc::out_of_range,
          "axis " + std::to_string(axis) + " of a tensor of rank "
            + std::to_string(rank));
  return static_cast<std::size_t>(axis < 0 ? axis + count : axis);
}

axis_view around(const shape& dims, std::size_t axis) {
  return {dims.numel(0, axis), dims[axis], dims.numel(axis + 1, dims.rank())};
}

shape coordinates(std::int64_t offset, const shape& dims) {
  shape result = dims;
  for (auto axis = dims.rank(); axis-- > 0;) {
    result[axis] = offset % dims[axis];
    offset /= dims[axis];
  }
  return result;
}

std::int64_t offset_of(const shape& coordinates, const shape& dims) {
  std::int64_t offset = 0;
  for (std::size_t axis = 0; axis < dims.rank(); ++axis)
    offset = offset * dims[axis] + coordinates[axis];
  return offset;
}

dtype from_paddle_type(std::int64_t type) {
  switch (type) {
  case 0: return dtype::boolean;
  case 1: return dtype::int16;
  case 2: return dtype::int32;
  case 3: return dtype::int64;
  case 4: return dtype::float16;
  case 5: return dtype::float32;
  case 6: return dtype::float64;
  case 20: return dtype::uint8;
  case 21: return dtype::int8;
  case 22: return dtype::bfloat16;
  default:
    throw error(errc::dtype_mismatch,
                "no tensor dtype has Paddle's number " + std::to_string(type));
  }
}

} // namespace troupe::ref
