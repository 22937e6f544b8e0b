// SPDX-License-Identifier: Apache-2.0
#include <troupe/graph/layers/layer_writer.hpp>

#include <troupe/base/error.hpp>

#include <utility>

namespace troupe::graph::layers {

namespace {

network& network_of(const std::string& type,
                    const std::vector<layer_slot>& inputs) {
  for (auto& slot : inputs)
    if (!slot.variables.empty())
      return slot.variables.front().net();
  throw error(errc::invalid_argument,
              "the op '" + type + "' has no input, so it belongs to no network",
              {.op_type = type});
}

const op_schema& schema_of(const network& net, const std::string& type) {
  op_desc named;
  named.type = type;
  return find_schema(net.schemas(), named);
}

} // namespace

std::map<std::string, variable_ref> op(const std::string& type,
                                       const std::vector<layer_slot>& inputs,
                                       attribute_map attributes, call at) {
  auto& net = network_of(type, inputs);
  const layer_writer layer{net, type, at};
  std::map<std::string, variable_ref> made;
  std::vector<layer_slot> outputs;
  for (auto& schema_slot : schema_of(net, type).outputs) {
    if (schema_slot.arity == slot_arity::any)
      continue;
    const std::string name{schema_slot.name};
    outputs.push_back(
      slot(name, made.emplace(name, layer.temporary()).first->second));
  }
  if (made.empty())
    throw error(errc::invalid_argument, "the op '" + type + "' has no output",
                {.op_type = type});
  layer.append(type, inputs, outputs, std::move(attributes),
               made.begin()->second);
  return made;
}

} // namespace troupe::graph::layers
