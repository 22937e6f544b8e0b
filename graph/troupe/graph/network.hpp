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

namespace troupe::graph {

class network;

/// A variable of a network that is being written: what layers take and return.
/// Valid as long as the network.
class variable_ref {
public:
  /// The variable of that name in the main block of `net.main`.
  variable_ref(network& net, std::string name)
    : net_(&net), name_(std::move(name)) {}

  /// The network that it is a variable of.
  network& net() const noexcept { return *net_; }
  /// Its name in the program.
  const std::string& name() const noexcept { return name_; }
  /// Its declaration. Throws error(not_found) if there is none any more.
  const var_desc& desc() const;
  ///@{
  /// Its extents and dtype as declared; throws as `desc` does.
  const shape& dims() const { return desc().dims; }
  dtype type() const { return desc().type; }
  ///@}

private:
  network* net_;
  std::string name_;
};

/// A pair of programs being written: `startup` gives parameters and state their
/// first values and runs once, `main` is the training step. Layers append to
/// both (layers.hpp), an optimizer completes `main` (optimizer.hpp).
///
/// Names are Paddle's: "fc_0.w_0" is the first weight of the first fc.
/// Variables refer to the network, hence it stays where it is. Thread rule: one
/// thread at a time; networks are independent of each other.
class network {
public:
  network() : network(op_schemas()) {}
  /// With ops of the user's own in `schemas`.
  explicit network(op_schema_table schemas) : schemas_(std::move(schemas)) {}
  network(const network&) = delete;
  network& operator=(const network&) = delete;

  program startup;
  program main;

  /// An input that each step feeds. -1 in `dims` is unknown until fed; axis 0
  /// counts samples. Throws error(invalid_argument) if the name is taken.
  variable_ref data(std::string name, const shape& dims,
                    dtype type = dtype::float32);

  /// `main` without backward and optimizer ops, in evaluation mode.
  program test() const { return clone_for_test(main); }

  // What layers are written with.

  /// "prefix_0", "prefix_1", ...: each name once in a network.
  std::string unique_name(std::string_view prefix);
  /// A variable of the step, its shape and dtype set by the op that writes it.
  variable_ref temporary(std::string name);
  /// A trained variable; `how` says how it starts. A name that exists already
  /// means sharing and must have the same shape. Throws error(shape_mismatch)
  /// if it has not, error(invalid_argument) if it is no parameter.
  variable_ref
  parameter(std::string name, const shape& dims, const initializer::any& how,
            bool trainable = true,
            std::source_location at = std::source_location::current());
  /// A persistable variable that no gradient trains: statistics, optimizer
  /// state, constants. Throws error(invalid_argument) if the name is taken.
  variable_ref state(std::string name, const shape& dims,
                     const initializer::any& how,
                     std::source_location at = std::source_location::current());
  /// Appends an op to `main`: sets op_role (unless it is set) and op_callstack,
  /// infers the shapes of its outputs. Throws as `infer_shapes` does; the op is
  /// then not appended.
  void append(op_desc op, std::source_location at);
  /// Appends an op to `startup`, likewise.
  void append_startup(op_desc op, std::source_location at);

  /// What the network knows of op types.
  const op_schema_table& schemas() const noexcept { return schemas_; }

private:
  variable_ref persistable(var_desc desc, const initializer::any& how,
                           std::source_location at);
  void append_to(program& p, op_desc op, std::source_location at);
  void check_free(const std::string& name) const;

  op_schema_table schemas_;
  std::map<std::string, int, std::less<>> counts_;
};

/// "net.cpp:12", the form of attribute op_callstack.
std::string call_site(std::source_location at);

} // namespace troupe::graph
