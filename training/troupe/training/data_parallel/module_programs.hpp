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
  /// parameter.
  std::vector<std::string> given;
  std::vector<graph::parameter_gradient> gradients;
  /// By input: its gradient; empty if there is none.
  std::vector<std::string> input_gradients;
};

/// Throws as the constructor of `graph_module` does.
module_programs make_module_programs(const module_description& from);

} // namespace troupe
