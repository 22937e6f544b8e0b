// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/graph/gradients.hpp>
#include <troupe/graph/program.hpp>
#include <troupe/training/data_parallel/graph_module.hpp>

#include <memory>
#include <string>
#include <vector>

namespace troupe {

/// The programs of a module. They have no feeds and fetch nothing: arguments,
/// results and what the backward pass reads are variables of the scope of
/// whoever runs them. So they stay where a device has computed them, in any
/// layout, and the shapes of arguments need have nothing in common.
struct module_programs {
  using program_ptr = std::shared_ptr<const graph::program>;

  program_ptr forward;    ///< reads inputs, writes outputs and `kept`
  program_ptr evaluation; ///< reads inputs, writes outputs
  /// Reads `kept` and the given gradients of outputs, writes gradients of
  /// parameters and inputs. Null if there are none.
  program_ptr backward;
  program_ptr update; ///< the optimizer; null if there is none
  /// The ops of `forward` and `backward`, for `make_second_programs`. Null if
  /// there is no backward pass.
  program_ptr both;
  graph::op_schema_table schemas;

  std::vector<std::string> inputs;
  std::vector<graph::var_desc> declared_inputs; ///< by input
  std::vector<std::string> outputs;
  std::vector<std::string> parameters;
  std::vector<std::string> buffers;
  /// What the backward pass reads of the forward pass: inputs, parameters,
  /// buffers and temporaries.
  std::vector<std::string> kept;
  /// Variables of the scope that belong to one pass: inputs, outputs, `kept`
  /// without parameters and buffers, and gradients.
  std::vector<std::string> temporaries;
  /// See `graph::append_gradients`: given gradients by output, gradients by
  /// parameter and by buffer that has one.
  std::vector<std::string> given;
  std::vector<graph::parameter_gradient> gradients;
  /// By input: its gradient; empty if there is none.
  std::vector<std::string> input_gradients;
};

/// The gradient of a backward pass: of the function from the given gradients of
/// outputs to the gradients of inputs, for parameters and inputs too.
struct second_programs {
  /// Reads `module_programs::kept`, the gradients that the backward pass was
  /// given, and the gradients of what it returned. Computes anew what it needs
  /// of the backward pass.
  module_programs::program_ptr program;

  std::vector<std::string> given; ///< by output, to the backward pass
  /// By input: the gradient of its gradient. Empty if it has no gradient.
  std::vector<std::string> of_inputs;
  /// By output and by input: the gradients that are computed. Empty if the
  /// gradients of inputs do not depend on it.
  std::vector<std::string> output_gradients, input_gradients;
  /// Of `module_programs::gradients`, those that are computed.
  std::vector<graph::parameter_gradient> gradients;
  /// Variables of the scope that belong to one pass, other than those of
  /// `module_programs::temporaries`.
  std::vector<std::string> temporaries;
};

/// Throws as the constructor of `graph_module` does.
module_programs make_module_programs(const module_description& from);

/// Throws error(invalid_argument) if no input has a gradient, and
/// error(unsupported_op), naming the op, if there is one between inputs,
/// parameters and outputs that has no second derivative.
second_programs make_second_programs(const module_programs& of);

} // namespace troupe
