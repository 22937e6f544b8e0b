// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/kernels/attribute.hpp>
#include <troupe/kernels/dtype.hpp>
#include <troupe/kernels/kernel.hpp>
#include <troupe/kernels/shape.hpp>

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace troupe::test {

/// A value that goes into or comes out of an op, in no device's memory: its
/// elements in double precision, whatever the dtype.
struct op_value {
  shape dims = {};
  dtype type = dtype::float32;
  std::vector<double> elements = {};
  /// Selected rows of a [height, ...] tensor if height > 0; `dims[0]` is then
  /// the number of rows.
  std::vector<std::int64_t> rows = {};
  std::int64_t height = 0;

  bool is_rows() const noexcept { return height > 0; }
};

/// The values of all slots of an op.
using op_values = std::map<std::string, std::vector<op_value>>;

/// Which gradient an op has: `<type>_grad` reads `kept` (inputs and outputs of
/// the forward) and the gradient of `results` (outputs), and makes the gradient
/// of `wanted` (inputs).
struct gradient_slots {
  std::vector<std::string> results;
  std::vector<std::string> kept;
  std::vector<std::string> wanted;
};

/// One op with everything it needs to run.
struct op_case {
  std::string type;
  op_values inputs;
  attribute_map attributes = {};
  /// Output slots and how many variables each has.
  std::map<std::string, std::size_t> outputs = {{"Out", 1}};
  step_info step = {};
  /// Output slots whose variables are those of an input slot.
  std::map<std::string, std::string> in_place = {};
  std::optional<gradient_slots> gradient = {};
  /// False if central differences would be too slow or meet a kink.
  bool differentiate = true;
};

/// For messages: type, input shapes and attributes.
std::string describe(const op_case& c);

// Values. The same seed gives the same value; all elements are float32 numbers,
// so that float32 and float64 kernels start from the same ones.

op_value values_of(const shape& dims, std::vector<double> elements,
                   dtype type = dtype::float32);
/// Uniform in [low, high).
op_value random_values(const shape& dims, std::uint64_t seed, double low = -1,
                       double high = 1);
/// Evenly spaced in [-1, 1], in random order: no two are closer than
/// 1 / numel, and none is closer to 0.
op_value distinct_values(const shape& dims, std::uint64_t seed);
/// Uniform integers in [low, high).
op_value random_indices(const shape& dims, std::uint64_t seed, std::int64_t low,
                        std::int64_t high, dtype type = dtype::int64);
/// Rows of a tensor of `whole` extents.
op_value random_rows(const shape& whole, std::vector<std::int64_t> rows,
                     std::uint64_t seed);
/// The tensor that selected rows stand for; a tensor stays as it is.
op_value densify(const op_value& value);

/// The same case with float32 inputs as `type`.
op_case with_float_type(op_case c, dtype type);

/// The gradient op of `forward`, whose outputs were `results`; the gradients
/// that come in are random.
op_case backward_of(const op_case& forward, const op_values& results);
/// The op with only the output slot `slot` (the split form of a gradient).
op_case only_output(op_case c, const std::string& slot);

} // namespace troupe::test
