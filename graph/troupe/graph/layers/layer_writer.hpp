// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/graph/layers.hpp>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace troupe::graph::layers {

/// Writes one layer into a network. Its ops share a name ("fc_0") and the
/// source line of the call.
class layer_writer {
public:
  layer_writer(network& net, std::string_view kind, call at)
    : net_(net), name_(net.unique_name(kind)), at_(at) {}

  /// A parameter "<layer>.<suffix>_0" unless the options name it.
  variable_ref parameter(std::string_view suffix, const shape& dims,
                         const parameter_options& options,
                         const initializer::any& otherwise) const;
  /// A persistable variable that is not a parameter, e.g. running statistics.
  variable_ref state(std::string_view suffix, const shape& dims,
                     float value) const;
  /// A new variable "<layer>.tmp_0".
  variable_ref temporary() const;

  /// Appends an op and returns `result`, one of its outputs. Throws
  /// error(invalid_argument) for a variable of another network.
  variable_ref append(std::string type, const std::vector<layer_slot>& inputs,
                      const std::vector<layer_slot>& outputs,
                      attribute_map attributes, variable_ref result) const;
  /// Appends an op whose only output, in slot `out`, is a new variable.
  variable_ref append(std::string type, const std::vector<layer_slot>& inputs,
                      attribute_map attributes, std::string out = "Out") const;
  /// The same, with a second new output in slot `extra`.
  variable_ref append_with(std::string extra, std::string type,
                           const std::vector<layer_slot>& inputs,
                           attribute_map attributes,
                           std::string out = "Out") const;
  /// Adds the activation of that name. Returns `x` if the name is empty.
  variable_ref activate(const variable_ref& x, const std::string& act) const;

private:
  std::vector<op_slot> names_of(const std::vector<layer_slot>& slots,
                                const std::string& type) const;

  network& net_;
  std::string name_;
  call at_;
};

/// A slot with one variable.
layer_slot slot(std::string name, const variable_ref& x);

/// A slot with several variables. Throws error(invalid_argument) if there are
/// none.
layer_slot slot(std::string name, const std::vector<variable_ref>& x);

/// Attribute values of height and width.
inline std::vector<std::int32_t> ints(const extents& e) {
  return {e.height, e.width};
}

} // namespace troupe::graph::layers
