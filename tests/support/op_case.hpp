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

/// An input or output value of an op, outside of any device's memory. Elements
/// are in double precision for every dtype.
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

/// The gradient op of an op. `<type>_grad` reads `kept` (inputs and outputs of
/// the forward op) and the gradients of `results` (outputs). It computes the
/// gradients of `wanted` (inputs).
struct gradient_slots {
  std::vector<std::string> results;
  std::vector<std::string> kept;
  std::vector<std::string> wanted;
};

/// One op with everything that it needs to run.
struct op_case {
  std::string type;
  op_values inputs;
  attribute_map attributes = {};
  /// Output slots and their numbers of variables.
  std::map<std::string, std::size_t> outputs = {{"Out", 1}};
  step_info step = {};
  /// Output slots that use the variables of an input slot: output to input.
  std::map<std::string, std::string> in_place = {};
  std::optional<gradient_slots> gradient = {};
  /// False if central differences would be too slow or cross a kink.
  bool differentiate = true;
};

/// For messages: type, input shapes and attributes.
std::string describe(const op_case& c);

// Values. The same seed gives the same value. All elements are float32 numbers,
// so that float32 and float64 kernels get the same inputs.

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
/// The dense tensor that selected rows represent. A tensor is returned
/// unchanged.
op_value densify(const op_value& value);

/// The same case with float32 inputs converted to `type`.
op_case with_float_type(op_case c, dtype type);

/// The gradient op of `forward`, whose outputs were `results`. Its input
/// gradients are random.
op_case backward_of(const op_case& forward, const op_values& results);
/// The op with only the output slot `slot` (the split form of a gradient).
op_case only_output(op_case c, const std::string& slot);

} // namespace troupe::test
