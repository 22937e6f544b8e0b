// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/graph/network.hpp>
#include <troupe/graph/op_schema.hpp>
#include <troupe/graph/program.hpp>
#include <troupe/kernels/scope.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace troupe {

struct module_programs;

/// What a module is made of.
struct module_description {
  /// Gives parameters and buffers their first values. May be empty.
  graph::program startup = {};
  /// The network. Its gradient ops are left out; those of the module are made
  /// anew. The ops of its optimizer, if it has one, are those of
  /// `data_parallel::update`.
  graph::program main = {};
  /// Arguments of the module, in order: variables that no op writes.
  std::vector<std::string> inputs = {};
  /// Results of the module, in order. A loss can be one.
  std::vector<std::string> outputs = {};
  /// Those of the inputs whose gradients are wanted, as PyTorch's
  /// `requires_grad` of an input.
  std::vector<std::string> input_gradients = {};
  /// Those of the buffers that have a gradient, as a parameter has one. No op
  /// updates them.
  std::vector<std::string> buffer_gradients = {};
  /// Op types of the programs.
  graph::op_schema_table schemas = graph::op_schemas();
};

/// Describes the part of a network between variables.
module_description
describe_module(const graph::network& net,
                const std::vector<graph::variable_ref>& inputs,
                const std::vector<graph::variable_ref>& outputs);

/// A network as a function of tensors: what `torch.nn.Module` is to PyTorch's
/// DataParallel. It has inputs, outputs, parameters and buffers.
///
/// - A parameter is a variable of the scope that is a parameter in the program.
///   If it is trained, it has a gradient: the variable "w@GRAD" of the scope,
///   which has no value before the first backward pass.
/// - A buffer is any other variable of the scope that the outputs need or the
///   forward ops update, such as the statistics of a batch norm. It has a
///   gradient if `module_description::buffer_gradients` names it.
///
/// Ops that run are those that the outputs need, and those that update buffers
/// from the given inputs.
///
/// Thread rule: one thread at a time.
class graph_module {
public:
  /// Makes the programs of the forward and the backward pass. Runs the startup
  /// program if no scope is given.
  ///
  /// Throws error(not_found) for a variable that is not declared, or an output
  /// that the inputs do not give; the error names it, or an input that is
  /// missing. Throws error(invalid_argument | graph_invalid) as
  /// `append_gradients` does for inputs whose gradients are wanted.
  /// @param parameters the scope of parameters and buffers; null: a new one
  /// @param seed of random initializers without one of their own
  explicit graph_module(module_description description,
                        std::shared_ptr<scope> parameters = {},
                        std::uint64_t seed = 0);
  ~graph_module();
  graph_module(const graph_module&) = delete;
  graph_module& operator=(const graph_module&) = delete;

  ///@{
  /// Names of the parameters and buffers that the outputs need, sorted.
  const std::vector<std::string>& parameters() const noexcept;
  const std::vector<std::string>& buffers() const noexcept;
  ///@}
  ///@{
  /// The values of parameters, buffers and gradients, and the optimizer's
  /// state. They may lie in a device's memory (`scope::to_host`). Use it only
  /// while no pass is running.
  scope& values() noexcept { return *values_; }
  const std::shared_ptr<scope>& shared_values() const noexcept {
    return values_;
  }
  ///@}
  /// The gradient of a parameter or buffer. Throws error(not_found) if the
  /// module has none that is trained or has a gradient. Null before the first
  /// backward pass.
  variable* gradient(std::string_view parameter);
  /// Removes all gradients. A backward pass otherwise adds to them.
  void zero_gradients();

  /// For `data_parallel`.
  const std::shared_ptr<const module_programs>& programs() const noexcept {
    return programs_;
  }

private:
  std::shared_ptr<const module_programs> programs_;
  std::shared_ptr<scope> values_;
};

} // namespace troupe
