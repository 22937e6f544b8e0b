// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/graph/op_schema.hpp>
#include <troupe/graph/program.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace troupe::graph {

/// Names of a parameter and of its gradient.
struct parameter_gradient {
  std::string parameter;
  std::string gradient;
  friend bool operator==(const parameter_gradient&,
                         const parameter_gradient&) = default;
};

/// Appends the gradient ops of `loss` to the main block of `p`, in reverse
/// order of the forward ops, and declares the gradient variables.
///
/// - The op that writes `loss` gets role Forward|Loss. A fill_constant of 1
/// with
///   role Backward|Loss starts the backward pass, all others have role Backward
///   and the call stack of their forward op.
/// - Ops that do not lead from a trainable parameter to the loss, and inputs
///   with stop_gradient, have no gradient.
/// - Input and weight gradient are separate ops of one type, the input's first.
/// - A variable that several ops read gets x@GRAD as the `sum` of
///   x@GRAD@RENAME@block0@0, ...@1, ... right behind the last of them.
/// - op_role_var names (parameter, gradient) on the op that writes the final
///   gradient of the parameter.
/// - The gradient of a sparse embedding has kind selected_rows, so has the sum
///   of such ones; mixed with dense ones it is dense.
///
/// Returns parameters with their gradients in the order in which the forward
/// pass first reads them. Throws error(not_found) if there is no such variable
/// or no op writes it, error(shape_mismatch) if it has more than one element,
/// error(invalid_argument) if it depends on no parameter or the program has
/// gradients already, error(graph_invalid) for a variable on the way that is
/// written twice and for the sparse gradient of what is no parameter.
/// `p` is unchanged after an error.
std::vector<parameter_gradient> append_backward(program& p,
                                                std::string_view loss,
                                                const op_schema_table& schemas);

} // namespace troupe::graph
