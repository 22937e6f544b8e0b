// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/base/error.hpp>
#include <troupe/kernels/kernel.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace troupe::ref {

/// The data that reference kernels compute with: a row-major array in double
/// precision. Integers are exact up to 2^53.
struct array {
  shape dims;
  std::vector<double> values;

  array() = default;
  /// All elements are `fill`.
  explicit array(const shape& extents, double fill = 0)
    : dims(extents), values(static_cast<std::size_t>(extents.numel()), fill) {}

  std::int64_t size() const noexcept {
    return static_cast<std::int64_t>(values.size());
  }
  double& operator[](std::int64_t i) {
    return values[static_cast<std::size_t>(i)];
  }
  double operator[](std::int64_t i) const {
    return values[static_cast<std::size_t>(i)];
  }
};

/// All elements of a plain host tensor of any dtype.
array read(const tensor& source);
/// Writes `source` to a plain tensor with the same numel. Only here are values
/// rounded, to the tensor's dtype; integers are truncated.
void write(const array& source, tensor& target);

/// The input tensor `index` of `slot`.
array input(const kernel_context& ctx, std::string_view slot,
            std::size_t index = 0);
/// Dtype of the input tensor `index` of `slot`.
dtype input_type(const kernel_context& ctx, std::string_view slot,
                 std::size_t index = 0);
/// The input's elements as integers, for labels and ids.
std::vector<std::int64_t> input_indices(const kernel_context& ctx,
                                        std::string_view slot);
/// The only element of an input, such as a learning rate or a power of beta.
/// Throws error(shape_mismatch) if there is not exactly one.
double input_scalar(const kernel_context& ctx, std::string_view slot);
/// Makes `value` the output `index` of `slot`.
void output(const kernel_context& ctx, std::string_view slot,
            const array& value, dtype type, std::size_t index = 0);
/// The same, if the op has that output.
void output_if_present(const kernel_context& ctx, std::string_view slot,
                       const array& value, dtype type);
/// Makes a [height, ...] tensor with these `rows` the output of `slot`;
/// `values` is [rows.size(), ...].
void output_rows(const kernel_context& ctx, std::string_view slot,
                 std::vector<std::int64_t> rows, std::int64_t height,
                 const array& values, dtype type);

/// The whole [height, ...] array that the selected rows represent.
array densify(const selected_rows& rows);

/// Throws error(code, message) unless `condition` holds.
inline void require(bool condition, errc code, const std::string& message) {
  if (!condition)
    throw error(code, message);
}
/// Throws error(shape_mismatch), naming `what`, unless both shapes are equal.
void require_same(std::string_view what, const shape& actual,
                  const shape& expected);

/// `axis` counted from the front, for `rank` axes. Throws
/// error(out_of_range).
std::size_t resolve_axis(std::int64_t axis, std::size_t rank);

/// A shape seen as [outer, extent, inner] around one axis.
struct axis_view {
  std::int64_t outer = 1, extent = 1, inner = 1;
  std::int64_t at(std::int64_t o, std::int64_t e, std::int64_t i) const {
    return (o * extent + e) * inner + i;
  }
};
axis_view around(const shape& dims, std::size_t axis);

/// Row-major coordinates of element `offset`, and back.
shape coordinates(std::int64_t offset, const shape& dims);
std::int64_t offset_of(const shape& coordinates, const shape& dims);

/// The dtype with Paddle's number `type` (framework.proto, VarType.Type).
/// Throws error(dtype_mismatch) for a number that Troupe does not support.
dtype from_paddle_type(std::int64_t type);

} // namespace troupe::ref
