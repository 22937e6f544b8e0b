// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/graph/initializer.hpp>
#include <troupe/graph/op_schema.hpp>
#include <troupe/graph/program.hpp>

#include <map>
#include <source_location>
#include <string>
#include <string_view>
#include <utility>

/// Training programs: networks under construction, their ops and variables,
/// gradients, files of Paddle, and the graph over several devices that is made
/// of a program.
namespace troupe::graph {

class network;

/// A variable of a network under construction. Layers take and return these.
/// Valid as long as the network.
class variable_ref {
public:
  /// The variable of that name in the main block of `net.main`.
  variable_ref(network& net, std::string name)
    : net_(&net), name_(std::move(name)) {}

  /// The network to which the variable belongs.
  network& net() const noexcept { return *net_; }
  /// The variable's name in the program.
  const std::string& name() const noexcept { return name_; }
  /// The variable's declaration. Throws error(not_found) if it has been
  /// removed.
  const var_desc& desc() const;
  ///@{
  /// Declared extents and dtype. Throw as `desc` does.
  const shape& dims() const { return desc().dims; }
  dtype type() const { return desc().type; }
  ///@}

private:
  network* net_;
  std::string name_;
};

/// A pair of programs under construction. `startup` runs once and initializes
/// parameters and state. `main` is the training step. Layers append to both
/// (layers.hpp). An optimizer completes `main` (optimizer.hpp).
///
/// Names follow Paddle: "fc_0.w_0" is the first weight of the first fc layer. A
/// network cannot be moved because variables refer to it. Thread rule: one
/// thread at a time; networks are independent of each other.
class network {
public:
  network() : network(op_schemas()) {}
  /// Uses `schemas`, which may include the user's own ops.
  explicit network(op_schema_table schemas) : schemas_(std::move(schemas)) {}
  network(const network&) = delete;
  network& operator=(const network&) = delete;

  program startup; ///< gives the parameters their first values
  program main;    ///< a training step

  /// Declares an input that each step feeds. An extent of -1 is unknown until
  /// fed; axis 0 counts samples. Throws error(invalid_argument) if the name is
  /// already used.
  variable_ref data(std::string name, const shape& dims,
                    dtype type = dtype::float32);

  /// Returns `main` in evaluation mode, without backward and optimizer ops.
  program test() const { return clone_for_test(main); }

  // Building blocks of layers.

  /// Returns "prefix_0", "prefix_1", ... Each name is unique in the network.
  std::string unique_name(std::string_view prefix);
  /// Declares a temporary variable. The op that writes it sets its shape and
  /// dtype.
  variable_ref temporary(std::string name);
  /// Declares a parameter with initializer `how`. If the name already exists,
  /// the parameter is shared. Throws error(shape_mismatch) if the existing
  /// parameter has another shape, and error(invalid_argument) if it is not a
  /// parameter.
  variable_ref
  parameter(std::string name, const shape& dims, const initializer::any& how,
            bool trainable = true,
            std::source_location at = std::source_location::current());
  /// Declares a persistable variable that is not trained: statistics, optimizer
  /// state, constants. Throws error(invalid_argument) if the name is already
  /// used.
  variable_ref state(std::string name, const shape& dims,
                     const initializer::any& how,
                     std::source_location at = std::source_location::current());
  /// Appends an op to `main`. Sets op_callstack, sets op_role unless it is set,
  /// and infers the shapes of the outputs. Throws as `infer_shapes` does; the
  /// op is then not appended.
  void append(op_desc op, std::source_location at);
  /// Appends an op to `startup` in the same way.
  void append_startup(op_desc op, std::source_location at);

  /// The schemas of all op types that the network can use.
  const op_schema_table& schemas() const noexcept { return schemas_; }

private:
  variable_ref persistable(var_desc desc, const initializer::any& how,
                           std::source_location at);
  void append_to(program& p, op_desc op, std::source_location at);
  void check_free(const std::string& name) const;

  op_schema_table schemas_;
  std::map<std::string, int, std::less<>> counts_;
};

/// Formats a source location for attribute op_callstack: "net.cpp:12".
std::string call_site(std::source_location at);

} // namespace troupe::graph
