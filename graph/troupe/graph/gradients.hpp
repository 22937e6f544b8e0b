// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/graph/op_schema.hpp>
#include <troupe/graph/program.hpp>

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::graph {

/// The names of a parameter and its gradient.
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
/// - Ops that are not on a path from a trainable parameter to the loss get no
///   gradient. Neither do inputs with stop_gradient.
/// - Input gradient and weight gradient are separate ops of the same type. The
///   input's comes first.
/// - If several ops read a variable x, "x@GRAD" is the `sum` of
///   "x@GRAD@RENAME@block0@0", "...@1" and so on. The `sum` op directly follows
///   the op that writes the last of them.
/// - The op that writes the final gradient of a parameter has op_role_var
///   (parameter, gradient).
/// - The gradient of a sparse embedding has kind selected_rows. A sum of such
///   gradients has that kind too. A sum with a dense gradient is dense.
///
/// Returns the parameters and their gradients, in the order in which the
/// forward pass first reads the parameters. After an error `p` is unchanged.
///
/// Throws
/// - error(not_found) if there is no variable `loss` or no op writes it;
/// - error(shape_mismatch) if it has more than one element;
/// - error(invalid_argument) if it depends on no parameter or if the program
///   already has gradients;
/// - error(graph_invalid) if a variable between parameters and loss is written
///   twice, or if a variable other than a parameter would get a sparse
///   gradient.
std::vector<parameter_gradient> append_backward(program& p,
                                                std::string_view loss,
                                                const op_schema_table& schemas);

/// The names that `append_gradients` has appended.
struct output_gradients {
  /// As `append_backward` returns them.
  std::vector<parameter_gradient> parameters;
  /// By output: the variable to feed with its gradient, "y@GRAD@GIVEN". Empty
  /// if the output depends on no parameter and on none of the inputs.
  std::vector<std::string> given;
  /// By input: its gradient. Empty if no output depends on it.
  std::vector<std::string> inputs;
};

/// Appends gradient ops as `append_backward` does, but for several outputs of
/// any shape, whose gradients are fed, and with the gradients of some inputs
/// too. No op has the role of a loss. Paddle's `gradients(targets, inputs,
/// target_gradients)`. After an error `p` is unchanged.
///
/// @param outputs variables that ops of the main block write
/// @param inputs variables that no op writes
///
/// Throws
/// - error(not_found) if a variable is not declared, or no op writes an output;
/// - error(invalid_argument) if an output is named twice, if no output depends
///   on a parameter or an input, if an input has no floating dtype, or if the
///   program already has gradients of an output;
/// - error(graph_invalid) as `append_backward` does.
output_gradients append_gradients(program& p,
                                  std::span<const std::string> outputs,
                                  std::span<const std::string> inputs,
                                  const op_schema_table& schemas);

} // namespace troupe::graph
