// SPDX-License-Identifier: Apache-2.0
#include <troupe/graph/layers/layer_writer.hpp>

#include <troupe/base/error.hpp>

#include <algorithm>
#include <array>
#include <utility>

namespace troupe::graph::layers {

namespace {

constexpr std::array<std::string_view, 5> activations{"relu", "sigmoid", "tanh",
                                                      "gelu", "softmax"};

void check_activation(const std::string& name) {
  if (std::ranges::count(activations, name))
    return;
  std::string known;
  for (auto activation : activations)
    known += (known.empty() ? "" : ", ") + std::string{activation};
  throw error{errc::invalid_argument,
              "no activation '" + name + "'; there are " + known};
}

[[noreturn]] void refuse_network(const std::string& op_type,
                                 const layer_slot& slot,
                                 const variable_ref& variable) {
  throw error{errc::invalid_argument,
              op_type + ": variable '" + variable.name() + "' in slot "
                + slot.name
                + " is of another network than the layer's first input",
              {.op_type = op_type, .variable = variable.name()}};
}

} // namespace

variable_ref layer_writer::parameter(std::string_view suffix, const shape& dims,
                                     const parameter_options& options,
                                     const initializer::any& otherwise) const {
  auto name = options.name.empty()
                ? net_.unique_name(name_ + "." + std::string{suffix})
                : options.name;
  return net_.parameter(std::move(name), dims, options.init.value_or(otherwise),
                        options.trainable, at_);
}

variable_ref layer_writer::state(std::string_view suffix, const shape& dims,
                                 float value) const {
  return net_.state(net_.unique_name(name_ + "." + std::string{suffix}), dims,
                    initializer::constant{value}, at_);
}

variable_ref layer_writer::temporary() const {
  return net_.temporary(net_.unique_name(name_ + ".tmp"));
}

std::vector<op_slot>
layer_writer::names_of(const std::vector<layer_slot>& slots,
                       const std::string& type) const {
  std::vector<op_slot> result;
  for (auto& slot : slots) {
    auto& names = result.emplace_back(op_slot{slot.name, {}}).arguments;
    for (auto& variable : slot.variables) {
      if (&variable.net() != &net_)
        refuse_network(type, slot, variable);
      names.push_back(variable.name());
    }
  }
  return result;
}

variable_ref layer_writer::append(std::string type,
                                  const std::vector<layer_slot>& inputs,
                                  const std::vector<layer_slot>& outputs,
                                  attribute_map attributes,
                                  variable_ref result) const {
  op_desc op;
  op.inputs = names_of(inputs, type);
  op.outputs = names_of(outputs, type);
  op.type = std::move(type);
  op.attributes = std::move(attributes);
  net_.append(std::move(op), at_);
  return result;
}

variable_ref layer_writer::append(std::string type,
                                  const std::vector<layer_slot>& inputs,
                                  attribute_map attributes,
                                  std::string out) const {
  auto result = temporary();
  return append(std::move(type), inputs, {slot(std::move(out), result)},
                std::move(attributes), result);
}

variable_ref layer_writer::append_with(std::string extra, std::string type,
                                       const std::vector<layer_slot>& inputs,
                                       attribute_map attributes,
                                       std::string out) const {
  auto result = temporary();
  auto second = temporary();
  return append(std::move(type), inputs,
                {slot(std::move(out), result), slot(std::move(extra), second)},
                std::move(attributes), result);
}

variable_ref layer_writer::activate(const variable_ref& x,
                                    const std::string& act) const {
  if (act.empty())
    return x;
  check_activation(act);
  return append(act, {slot("X", x)}, {});
}

layer_slot slot(std::string name, const variable_ref& x) {
  return {std::move(name), {x}};
}

layer_slot slot(std::string name, const std::vector<variable_ref>& x) {
  if (x.empty())
    throw error{errc::invalid_argument,
                "a layer needs at least one variable in slot " + name};
  return {std::move(name), x};
}

} // namespace troupe::graph::layers
