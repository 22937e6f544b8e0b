// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/graph/program.hpp>

#include <string_view>

namespace troupe::graph {

/// The op type that `separate_shape_inputs` makes. Out has the shape, dtype and
/// levels of X, but no elements.
inline constexpr std::string_view shape_of_type = "shape_of";

/// True if an op reads only the shape of the inputs in a slot (Paddle's "no
/// need buffer" inputs), such as X and Y of the gradient of a sum.
bool reads_only_shape(std::string_view op_type, std::string_view slot);

/// Makes ops of the main block that read only the shape of a variable read a
/// separate variable, "<name>@SHAPE". An op `shape_of` after the writer creates
/// it. The memory of the original variable is then free after its last other
/// reader. For example, the operands of bias and residual additions are not
/// kept for the backward pass.
///
/// This is done only if it frees memory earlier: the variable is not
/// persistable, one op writes it, and all its other readers come before.
/// Results do not change.
program separate_shape_inputs(program p);

/// True if an op of the main block could read such variables.
bool has_shape_inputs(const program& p);

} // namespace troupe::graph
