// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/kernels/kernel.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string_view>
#include <vector>

namespace troupe {

// What kernels of all kinds of devices ask of their arguments.

/// Throws error(shape_mismatch): "X [2, 3] and Y [4, 5]: <why>".
[[noreturn]] void throw_shapes(std::string_view slot_a, const shape& a,
                               std::string_view slot_b, const shape& b,
                               std::string_view why);
/// Throws error(shape_mismatch): "X [2, 3]: <why>".
[[noreturn]] void throw_shape(std::string_view slot, const shape& dims,
                              std::string_view why);
/// Throws error(shape_mismatch), naming both shapes, unless `dims` is
/// `expected`.
void require_shape(std::string_view slot, const shape& dims,
                   const shape& expected);
/// Throws error(shape_mismatch) unless `dims` has `rank` extents.
void require_rank(std::string_view slot, const shape& dims, std::size_t rank);

/// Throws error(dtype_mismatch), naming the slot, unless `type` is `expected`.
void require_type(std::string_view slot, dtype type, dtype expected);
/// Throws error(dtype_mismatch): "X is int8, expected <expected>".
[[noreturn]] void throw_dtype(std::string_view slot, dtype actual,
                              std::string_view expected);

/// Calls `f(T{})` with the C++ type of `type`: float or double, with Integers
/// std::int32_t or std::int64_t, too. Throws error(dtype_mismatch) for others.
template <bool Integers = true, class F>
void for_number_type(std::string_view slot, dtype type, F f) {
  switch (type) {
  case dtype::float32: return f(float{});
  case dtype::float64: return f(double{});
  case dtype::int32:
    if constexpr (Integers)
      return f(std::int32_t{});
    break;
  case dtype::int64:
    if constexpr (Integers)
      return f(std::int64_t{});
    break;
  default: break;
  }
  throw_dtype(slot, type,
              Integers ? "float32, float64, int32 or int64"
                       : "float32 or float64");
}

/// `value` as a T. Integers saturate, and NaN becomes 0.
template <class T>
T number_as(double value) {
  using limits = std::numeric_limits<T>;
  if constexpr (limits::is_integer) {
    if (!(value > static_cast<double>(limits::min())))
      return value == value ? limits::min() : T(0);
    if (value >= static_cast<double>(limits::max()))
      return limits::max();
  }
  return static_cast<T>(value);
}

/// Input tensor that must be float32; throws error(dtype_mismatch).
tensor float_input(const kernel_context& ctx, std::string_view slot,
                   std::size_t index = 0);
/// Float32 output tensor of `dims`.
tensor float_output(const kernel_context& ctx, std::string_view slot,
                    const shape& dims, std::size_t index = 0);
/// Writes output XShape, if the op has it: a tensor without memory whose shape
/// is a zero and X's extents. The gradient op reads X's shape from it.
void write_xshape(kernel_context& ctx, const shape& dims, dtype type);

/// The zero-based axis for `axis` in [-rank, rank). Throws error(out_of_range)
/// that names the slot.
std::size_t normal_axis(std::int64_t axis, std::size_t rank,
                        std::string_view slot);

/// A plain tensor seen around one axis: element (o, e, i) is at (o * extent +
/// e) * inner + i.
struct axis_view {
  std::int64_t outer = 1;
  std::int64_t extent = 1;
  std::int64_t inner = 1;

  axis_view(const shape& dims, std::size_t axis)
    : outer(dims.numel(0, axis)), extent(dims[axis]),
      inner(dims.numel(axis + 1, dims.rank())) {}
};

/// True for NHWC, false for NCHW and AnyLayout; throws
/// error(invalid_argument) for other values of the attribute.
bool has_channels_last(const attribute_map& attributes, std::string_view name);

/// The dtype in an attribute that holds a number of Paddle's VarType.Type
/// ("dtype", "out_dtype"). Throws error(invalid_argument) for unknown numbers.
dtype dtype_attribute(const attribute_map& attributes, std::string_view name,
                      dtype otherwise);

/// The int64 or int32 elements of a tensor (labels, ids).
class index_values {
public:
  /// Throws error(dtype_mismatch) for other dtypes, and error(unsupported_op)
  /// if the host cannot read the tensor's memory.
  index_values(const tensor& source, std::string_view slot);
  std::int64_t operator[](std::int64_t i) const noexcept {
    return wide_ ? wide_[i] : narrow_[i];
  }

private:
  const std::int64_t* wide_ = nullptr;
  const std::int32_t* narrow_ = nullptr;
};

// Numbers that a kernel needs on the host. Errors are those of index_values.

/// All elements of an int32 or int64 tensor.
std::vector<std::int64_t> integers(const tensor& value, std::string_view slot);
/// The number in input `slot`; without that input, attribute `name`.
std::int64_t integer_of(const kernel_context& ctx, std::string_view slot,
                        std::string_view name, std::int64_t otherwise);
/// The numbers in the tensors of `list_slot`, one in each. Without these, the
/// numbers in the tensor in `slot`; without that, attribute `name`.
std::vector<std::int64_t> integers_of(const kernel_context& ctx,
                                      std::string_view list_slot,
                                      std::string_view slot,
                                      std::string_view name);

} // namespace troupe
