// SPDX-License-Identifier: Apache-2.0
#include "small_program.hpp"

#include <troupe/graph/argument.hpp>

#include <algorithm>
#include <span>

namespace troupe::graph::testing {

small_program& small_program::temporary(const std::string& name, var_kind kind,
                                        dtype type) {
  var_desc var;
  var.name = name;
  var.kind = kind;
  var.type = type;
  var.dims = {4};
  desc.main().add_var(std::move(var));
  return *this;
}

small_program& small_program::persistable(const std::string& name, shape dims) {
  var_desc var;
  var.name = name;
  var.dims = dims;
  var.persistable = true;
  desc.main().add_var(std::move(var));
  return *this;
}

small_program& small_program::op(const std::string& type, const names& inputs,
                                 const names& outputs, int role,
                                 const names& role_vars) {
  for (auto* list : {&inputs, &outputs})
    for (auto& name : *list)
      if (names_variable(name) && desc.main().find_var(name) == nullptr)
        temporary(name);
  op_desc added;
  added.type = type;
  added.set_input("X", inputs);
  added.set_output("Out", outputs);
  added.attributes.set("op_role", std::int32_t{role});
  if (!role_vars.empty())
    added.attributes.set("op_role_var", role_vars);
  desc.main().ops.push_back(std::move(added));
  return *this;
}

small_program& small_program::loss_gradient(const std::string& loss) {
  return op("fill_constant", {}, {gradient_name(loss)},
            role_backward | role_loss);
}

small_program linear_with_sgd() {
  small_program p;
  p.persistable("w", {4, 4}).persistable("b").persistable("lr", {1});
  p.op("mul", {"x", "w"}, {"xw"})
    .op("add", {"xw", "b"}, {"y"})
    .op("mean", {"y"}, {"loss"}, role_forward | role_loss)
    .loss_gradient("loss")
    .op("mean_grad", {"y", "loss@GRAD"}, {"y@GRAD"}, role_backward)
    .op("add_grad", {"y@GRAD"}, {"xw@GRAD", "b@GRAD"}, role_backward,
        {"b", "b@GRAD"})
    .op("mul_grad", {"x", "xw@GRAD"}, {"w@GRAD"}, role_backward,
        {"w", "w@GRAD"})
    .op("sgd_b", {"b", "lr", "b@GRAD"}, {"b"}, role_optimize, {"b", "b@GRAD"})
    .op("sgd_w", {"w", "lr", "w@GRAD"}, {"w"}, role_optimize, {"w", "w@GRAD"});
  return p;
}

std::vector<device_id> cpus(std::size_t n) {
  std::vector<device_id> devices;
  for (std::size_t i = 0; i < n; ++i)
    devices.push_back({device_kind::cpu, static_cast<int>(i)});
  return devices;
}

build_options on_cpus(std::size_t n, merge_strategy strategy,
                      const names& fetches) {
  build_options options;
  options.devices = cpus(n);
  options.strategy = strategy;
  options.fetches = fetches;
  return options;
}

ssa_graph build(const small_program& p, const build_options& options) {
  return build_ssa_graph(p.desc, options);
}

namespace {

std::string op_name(const op_handle& op) {
  return op.desc->type + "@" + std::to_string(op.device);
}

std::string var_name(const var_handle& v) {
  return std::string{v.name} + ":" + std::to_string(v.version);
}

std::string list_vars(const ssa_graph& g, std::span<const handle_id> ids,
                      std::size_t device) {
  std::string text;
  for (auto id : ids) {
    auto& v = g.var(id);
    text += " " + var_name(v);
    if (v.device != device)
      text += "@" + std::to_string(v.device);
  }
  return text;
}

std::string any_name(const ssa_graph& g, handle_id id) {
  if (g.is_op(id))
    return op_name(g.op(id));
  return var_name(g.var(id)) + "@" + std::to_string(g.var(id).device);
}

} // namespace

std::string describe_ops(const ssa_graph& g) {
  std::string text;
  for (auto& op : g.ops)
    text += op_name(op) + ":" + list_vars(g, op.inputs, op.device) + " ->"
            + list_vars(g, op.outputs, op.device) + "\n";
  return text;
}

std::string describe_hazards(const ssa_graph& g) {
  std::string text;
  for (auto& e : g.edges) {
    if (e.kind == edge_kind::data && e.distance == 0)
      continue;
    text += any_name(g, e.from) + " -> " + any_name(g, e.to) + " "
            + std::string{to_string(e.kind)} + " +" + std::to_string(e.distance)
            + "\n";
  }
  return text;
}

bool has_edge(const ssa_graph& g, handle_id from, handle_id to, edge_kind kind,
              std::uint32_t distance) {
  return std::count(g.edges.begin(), g.edges.end(),
                    edge{from, to, kind, distance})
         == 1;
}

handle_id find_op(const ssa_graph& g, const std::string& type,
                  std::size_t device) {
  handle_id found = no_handle;
  for (auto& op : g.ops)
    if (op.desc->type == type && op.device == device) {
      if (found != no_handle)
        return no_handle;
      found = op.id;
    }
  return found;
}

handle_id find_var(const ssa_graph& g, const std::string& name,
                   std::uint32_t version, std::size_t device) {
  for (auto& v : g.vars)
    if (v.name == name && v.version == version && v.device == device)
      return v.id;
  return no_handle;
}

} // namespace troupe::graph::testing
