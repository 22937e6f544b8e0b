// SPDX-License-Identifier: Apache-2.0
#include <troupe/graph/handle_maker.hpp>

#include <troupe/base/error.hpp>

#include <utility>

namespace troupe::graph {

handle_maker::handle_maker(const block& b, std::vector<device_id> devices)
  : block_(b) {
  graph_.devices = std::move(devices);
  graph_.ops.reserve(b.ops.size() * num_devices());
  graph_.vars.reserve(b.vars.size() * num_devices());
  descs_.reserve(b.ops.size());
  ids_.reserve(b.vars.size());
}

name_id handle_maker::id_of(std::string_view name) {
  if (const auto known = ids_.find(name); known != ids_.end())
    return known->second;
  const auto id = static_cast<name_id>(names_.size());
  auto& added = names_.emplace_back(std::string{name}, block_.find_var(name));
  ids_.emplace(added.name, id);
  latest_.resize(names_.size() * num_devices(), none);
  return id;
}

op_handle& handle_maker::add_op(op_kind kind, std::size_t device) {
  op_handle op;
  op.id = static_cast<handle_id>(graph_.ops.size());
  op.kind = kind;
  op.device = device;
  desc_of_op_.push_back(descs_.size() - 1);
  return graph_.ops.emplace_back(std::move(op));
}

std::size_t handle_maker::add_var(name_id name, var_handle v) {
  auto index = graph_.vars.size();
  latest(name, v.device) = index;
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

std::size_t handle_maker::initial_version(name_id id, std::size_t device) {
  auto& [name, declared] = names_[id];
  if (declared == nullptr
      || (!declared->persistable && declared->kind != var_kind::dense
          && declared->kind != var_kind::tensor_array))
    fail_unwritten(name, device);
  var_handle v;
  v.name = name;
  v.device = device;
  v.persistable = declared->persistable;
  // A tensor array begins each step empty.
  v.feed = !declared->persistable && declared->kind == var_kind::dense;
  return add_var(id, std::move(v));
}

void handle_maker::read(name_id name, std::size_t device) {
  auto var = latest(name, device);
  if (var == none)
    var = initial_version(name, device);
  graph_.ops.back().inputs.push_back(static_cast<handle_id>(var));
}

void handle_maker::write(name_id id, std::size_t device) {
  auto& op = graph_.ops.back();
  const auto last = latest(id, device);
  auto* old = last == none ? nullptr : &graph_.vars[last];
  // An op that names an output twice makes one version of it.
  if (old != nullptr && old->generator == op.id) {
    op.outputs.push_back(static_cast<handle_id>(last));
    return;
  }
  auto& [name, declared] = names_[id];
  var_handle v;
  v.name = name;
  v.device = device;
  v.version = old == nullptr ? 1 : old->version + 1;
  v.persistable = declared != nullptr && declared->persistable;
  v.generator = op.id;
  op.outputs.push_back(static_cast<handle_id>(add_var(id, std::move(v))));
}

bool handle_maker::has_value(name_id name, std::size_t device) const {
  auto* declared = names_[name].declared;
  return (declared != nullptr && declared->persistable)
         || latest_[name * num_devices() + device] != none;
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
