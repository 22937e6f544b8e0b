// SPDX-License-Identifier: Apache-2.0
#include <troupe/graph/program_text.hpp>

#include <cstddef>
#include <cstdio>
#include <type_traits>

namespace troupe::graph {

namespace {

std::string text_of(std::int32_t value) {
  return std::to_string(value);
}
std::string text_of(std::int64_t value) {
  return std::to_string(value);
}
std::string text_of(bool value) {
  return value ? "true" : "false";
}
std::string text_of(const std::string& value) {
  return '"' + value + '"';
}
std::string text_of(block_ref value) {
  return "block " + std::to_string(value.index);
}

std::string text_of(double value) {
  char buffer[32];
  std::snprintf(buffer, sizeof buffer, "%.6g", value);
  return buffer;
}

template <class T>
std::string text_of(const std::vector<T>& values) {
  std::string text;
  for (const T& value : values)
    text += (text.empty() ? "" : ", ") + text_of(value);
  return "[" + text + "]";
}

std::string attribute_text(const attribute& value) {
  return std::visit(
    [](const auto& v) {
      if constexpr (std::is_same_v<std::decay_t<decltype(v)>, float>)
        return text_of(static_cast<double>(v));
      else
        return text_of(v);
    },
    value);
}

std::string argument_text(const std::vector<std::string>& names) {
  if (names.size() == 1)
    return names.front();
  std::string text;
  for (const auto& name : names)
    text += (text.empty() ? "" : ", ") + name;
  return "[" + text + "]";
}

std::string slots_text(const std::vector<op_slot>& slots) {
  std::string text;
  for (const auto& slot : slots)
    text += (text.empty() ? "" : ", ") + slot.name + ": "
            + argument_text(slot.arguments);
  return "{" + text + "}";
}

std::string_view kind_text(var_kind kind) {
  switch (kind) {
  case var_kind::dense: return "";
  case var_kind::selected_rows: return ", selected_rows";
  case var_kind::feed_minibatch: return ", feed_minibatch";
  case var_kind::fetch_list: return ", fetch_list";
  case var_kind::step_scopes: return ", step_scopes";
  case var_kind::tensor_array: return ", tensor_array";
  case var_kind::reader: return ", reader";
  case var_kind::raw: return ", raw";
  }
  return ", unknown";
}

std::string var_text(const var_desc& var) {
  auto text = "var " + var.name + ": " + std::string{to_string(var.type)} + " "
              + to_string(var.dims) + std::string{kind_text(var.kind)};
  auto add = [&text](bool condition, const char* word) {
    if (condition)
      text += word;
  };
  add(var.persistable, ", persistable");
  add(var.is_parameter, ", parameter");
  add(var.stop_gradient, ", stop_gradient");
  add(var.need_check_feed, ", feed");
  return text;
}

} // namespace

std::string role_text(std::int32_t role) {
  struct bit {
    std::int32_t value;
    const char* name;
  };
  constexpr bit bits[] = {
    {role_backward, "backward"}, {role_optimize, "optimize"},
    {role_rpc, "rpc"},           {role_dist, "dist"},
    {role_lr_sched, "lr_sched"}, {role_collective, "collective"},
  };
  std::string text;
  for (auto b : bits)
    if (role & b.value)
      text += (text.empty() ? "" : "|") + std::string{b.name};
  if (text.empty())
    text = "forward";
  return role & role_loss ? text + "|loss" : text;
}

std::string attributes_text(const attribute_map& attributes) {
  constexpr std::size_t longest = 100;
  std::string text;
  for (const auto& [name, value] : attributes) {
    if (name.starts_with("op_"))
      continue;
    const auto whole = attribute_text(value);
    text += (text.empty() ? "" : " ") + name + "="
            + (whole.size() > longest
                 ? "(" + std::to_string(whole.size()) + " characters)"
                 : whole);
  }
  return text;
}

std::string to_text(const op_desc& op) {
  auto text =
    slots_text(op.outputs) + " = " + op.type + " " + slots_text(op.inputs);
  for (const auto& [name, value] : op.attributes)
    if (name == "op_role")
      text += " role=" + role_text(op.role());
    else if (name != "op_callstack")
      text += " " + name + "=" + attribute_text(value);
  return text;
}

std::string to_text(const program& p) {
  std::string text;
  for (const auto& b : p.blocks) {
    text += "block " + std::to_string(b.index) + "\n";
    for (const auto& [name, var] : b.vars)
      text += "  " + var_text(var) + "\n";
    for (const auto& op : b.ops)
      text += "  " + to_text(op) + "\n";
  }
  return text;
}

} // namespace troupe::graph
