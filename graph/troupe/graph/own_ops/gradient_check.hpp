// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/graph/op_schema.hpp>
#include <troupe/kernels/kernel.hpp>
#include <troupe/kernels/tensor.hpp>

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace troupe::graph {

/// An op, and where it is differentiated.
struct gradient_case {
  std::string type;
  /// Values by slot, plain and in host memory. Floating-point values are
  /// converted to `precision` and differentiated. Choose some at which the op
  /// is smooth: no kink within `step`.
  std::map<std::string, std::vector<tensor>> inputs;
  attribute_map attributes = {};
  /// Numbers of variables of output slots that have not one; others of the
  /// schema have one.
  std::map<std::string, std::size_t> outputs = {};
  /// float64, or float32 for kernels that have nothing else: then with a
  /// coarser step and tolerance.
  dtype precision = dtype::float64;
  step_info step = {};
};

/// An element of a gradient that is wrong.
struct wrong_gradient {
  std::string op;           ///< type of the gradient op
  std::string input;        ///< slot of the input, e.g. "X"
  std::size_t variable = 0; ///< of the slot
  shape element;            ///< its position; empty for a scalar
  double computed = 0;      ///< by the gradient op
  double expected = 0;      ///< by central differences
};

/// "gaussian_grad: the gradient of X at [1, 2] is 0.25, but differences give
/// -0.25".
std::string to_string(const wrong_gradient& wrong);

/// Compares the gradient ops that the schema makes with central differences of
/// the op: of a sum of its results with random weights, for each element of
/// each input. Returns the first element that is wrong. A difference of 1e-6 of
/// the largest gradient of the input (of 1e-2, if all are smaller) is rounding;
/// in float32 5e-3.
///
/// Throws error(unsupported_op) for an op without schema, gradient or kernel on
/// a CPU, error(shape_mismatch) if a gradient has not the shape of its input,
/// and what the kernels throw. Any thread.
std::optional<wrong_gradient>
find_wrong_gradient(const op_schema_table& schemas, const kernel_table& kernels,
                    const gradient_case& what);

} // namespace troupe::graph
