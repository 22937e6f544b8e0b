// SPDX-License-Identifier: Apache-2.0
#include <troupe/graph/handle_maker.hpp>

#include <troupe/base/error.hpp>

#include <utility>

namespace troupe::graph {

handle_maker::handle_maker(const block& b, std::vector<device_id> devices)
  : block_(b), latest_(devices.size()) {
  graph_.devices = std::move(devices);
}

op_handle& handle_maker::add_op(op_kind kind, std::size_t device) {
  op_handle op;
  op.id = static_cast<handle_id>(graph_.ops.size());
  op.kind = kind;
  op.device = device;
  desc_of_op_.push_back(descs_.size() - 1);
  return graph_.ops.emplace_back(std::move(op));
}

std::size_t handle_maker::add_var(var_handle v) {
  auto index = graph_.vars.size();
  latest_[v.device].insert_or_assign(v.name, index);
  graph_.vars.push_back(std::move(v));
  return index;
}

void handle_maker::fail_unwritten(const std::string& name,
                                  std::size_t device) const {
  auto& desc = descs_.back();
  error_context where;
  where.op = desc.type + "#" + std::to_string(graph_.ops.back().id);
  where.op_type = desc.type;
  where.variable = name;
  where.device = to_string(graph_.devices[device]);
  where.call_stack = desc.call_stack();
  throw error{errc::graph_invalid,
              "op " + desc.type + " reads \"" + name
                + "\", which no op before it writes, which is not persistable, "
                  "and which is no dense variable that could be fed",
              std::move(where)};
}

std::size_t handle_maker::initial_version(const std::string& name,
                                          std::size_t device) {
  auto* declared = block_.find_var(name);
  if (declared == nullptr
      || (!declared->persistable && declared->kind != var_kind::dense))
    fail_unwritten(name, device);
  var_handle v;
  v.name = name;
  v.device = device;
  v.persistable = declared->persistable;
  v.feed = !declared->persistable;
  return add_var(std::move(v));
}

void handle_maker::read(const std::string& name, std::size_t device) {
  auto at = latest_[device].find(name);
  auto var =
    at == latest_[device].end() ? initial_version(name, device) : at->second;
  graph_.ops.back().inputs.push_back(static_cast<handle_id>(var));
}

void handle_maker::write(const std::string& name, std::size_t device) {
  auto& op = graph_.ops.back();
  auto at = latest_[device].find(name);
  auto* old = at == latest_[device].end() ? nullptr : &graph_.vars[at->second];
  // An op that names an output twice makes one version of it.
  if (old != nullptr && old->generator == op.id) {
    op.outputs.push_back(static_cast<handle_id>(at->second));
    return;
  }
  auto* declared = block_.find_var(name);
  var_handle v;
  v.name = name;
  v.device = device;
  v.version = old == nullptr ? 1 : old->version + 1;
  v.persistable = declared != nullptr && declared->persistable;
  v.generator = op.id;
  op.outputs.push_back(static_cast<handle_id>(add_var(std::move(v))));
}

bool handle_maker::has_value(const std::string& name,
                             std::size_t device) const {
  auto* declared = block_.find_var(name);
  return (declared != nullptr && declared->persistable)
         || latest_[device].contains(name);
}

ssa_graph handle_maker::finish() {
  auto first_var = static_cast<handle_id>(graph_.ops.size());
  for (auto& op : graph_.ops) {
    for (auto& input : op.inputs)
      input += first_var;
    for (auto& output : op.outputs)
      output += first_var;
  }
  for (std::size_t i = 0; i < graph_.vars.size(); ++i)
    graph_.vars[i].id = first_var + static_cast<handle_id>(i);
  auto descs = std::make_shared<const std::vector<op_desc>>(std::move(descs_));
  for (std::size_t i = 0; i < graph_.ops.size(); ++i)
    graph_.ops[i].desc = &(*descs)[desc_of_op_[i]];
  graph_.descs = std::move(descs);
  return std::move(graph_);
}

} // namespace troupe::graph
