// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/graph/program.hpp>

#include <string_view>

namespace troupe::graph {

/// The op type that `separate_shape_inputs` makes: X -> Out, a value with X's
/// shape, dtype and levels, but without elements.
inline constexpr std::string_view shape_of_type = "shape_of";

/// Whether an op reads no more than the shape of the inputs in a slot (Paddle's
/// "no need buffer" inputs): X and Y of the gradient of a sum.
bool reads_only_shape(std::string_view op_type, std::string_view slot);

/// Lets ops of the main block that read only the shape of a variable read it
/// from a variable of its own, "<name>@SHAPE", which an op `shape_of` behind
/// the writer makes. The variable's memory is then free after its last other
/// reader: the bias is added to a product, the residual to a block's output,
/// and neither is kept for the backward pass.
///
/// Only where that frees memory earlier: the variable is not persistable, one
/// op writes it, and all its other readers stand before. Results do not change.
program separate_shape_inputs(program p);

/// True if an op of the main block may be given such variables.
bool has_shape_inputs(const program& p);

} // namespace troupe::graph
