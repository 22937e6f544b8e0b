// SPDX-License-Identifier: Apache-2.0
#include <troupe/graph/ssa/handle_maker.hpp>

#include <troupe/base/error.hpp>

#include <utility>

namespace troupe::graph {

handle_maker::handle_maker(std::shared_ptr<const program> p,
                           std::vector<device_id> devices)
  : block_(p->main()), sources_(std::make_shared<handle_sources>()),
    names_(block_.vars.size()) {
  graph_.devices = std::move(devices);
  graph_.ops.reserve(block_.ops.size() * num_devices());
  graph_.vars.reserve(block_.vars.size() * num_devices());
  ranges_.reserve(block_.ops.size() * num_devices());
  sources_->described = std::move(p);
  for (auto& [name, declared] : block_.vars) {
    names_.add(name);
    declared_.push_back(&declared);
  }
  shared_.resize(names_.size());
  latest_.resize(names_.size() * num_devices(), none);
}

name_id handle_maker::id_of(std::string_view name) {
  if (const auto known = names_.find(name); known != name_table::none)
    return known;
  declared_.push_back(nullptr);
  shared_.push_back(false);
  latest_.resize(declared_.size() * num_devices(), none);
  return names_.add(sources_->undeclared.emplace_back(name));
}

void handle_maker::make_desc(op_desc desc) {
  desc_ = &sources_->made.emplace_back(std::move(desc));
}

op_handle& handle_maker::add_op(op_kind kind, std::size_t device) {
  ranges_.push_back({sources_->arguments.size(), 0});
  auto& op = graph_.ops.emplace_back();
  op.id = static_cast<handle_id>(graph_.ops.size() - 1);
  op.kind = kind;
  op.device = static_cast<std::uint32_t>(device);
  op.desc = desc_;
  return op;
}

std::uint32_t handle_maker::add_var(name_id name, std::size_t device) {
  const auto index = static_cast<std::uint32_t>(graph_.vars.size());
  const auto place = place_of(name, device);
  auto& last = latest_[name * num_devices() + place];
  auto& v = graph_.vars.emplace_back();
  v.name = names_[name];
  v.device = static_cast<std::uint32_t>(place);
  v.persistable = declared_[name] != nullptr && declared_[name]->persistable;
  v.storage = last == none ? graph_.num_storages++ : graph_.vars[last].storage;
  last = index;
  return index;
}

void handle_maker::fail_unwritten(name_id name, std::size_t device) const {
  error_context where;
  where.op = desc_->type + "#" + std::to_string(graph_.ops.back().id);
  where.op_type = desc_->type;
  where.variable = names_[name];
  where.device = to_string(graph_.devices[device]);
  where.call_stack = desc_->call_stack();
  throw error{errc::graph_invalid,
              "op " + desc_->type + " reads \"" + where.variable
                + "\", which no op before it writes, which is not persistable, "
                  "and which is no dense variable that could be fed",
              std::move(where)};
}

std::uint32_t handle_maker::initial_version(name_id name, std::size_t device) {
  const auto* declared = declared_[name];
  if (declared == nullptr
      || (!declared->persistable && declared->kind != var_kind::dense
          && declared->kind != var_kind::tensor_array))
    fail_unwritten(name, device);
  const auto index = add_var(name, device);
  // A tensor array is no feed: it is empty at the start of each step.
  graph_.vars[index].feed =
    !declared->persistable && declared->kind == var_kind::dense;
  return index;
}

void handle_maker::read(name_id name, std::size_t device) {
  auto var = latest(name, device);
  if (var == none)
    var = initial_version(name, device);
  sources_->arguments.push_back(var);
  ++ranges_.back().inputs;
}

void handle_maker::write(name_id name, std::size_t device) {
  const auto op = graph_.ops.back().id;
  const auto last = latest(name, device);
  // An op that names an output twice makes one version of it.
  if (last != none && graph_.vars[last].generator == op) {
    sources_->arguments.push_back(last);
    return;
  }
  const auto made = add_var(name, device);
  auto& v = graph_.vars[made];
  v.version = last == none ? 1 : graph_.vars[last].version + 1;
  v.generator = op;
  sources_->arguments.push_back(made);
}

bool handle_maker::has_value(name_id name, std::size_t device) const {
  const auto* declared = declared_[name];
  return (declared != nullptr && declared->persistable)
         || latest(name, device) != none;
}

ssa_graph handle_maker::finish() {
  graph_.vars.shrink_to_fit();
  sources_->arguments.shrink_to_fit();
  const auto first_var = static_cast<handle_id>(graph_.ops.size());
  for (auto& argument : sources_->arguments)
    argument += first_var;
  for (std::size_t i = 0; i < graph_.vars.size(); ++i)
    graph_.vars[i].id = first_var + static_cast<handle_id>(i);
  const std::span<const handle_id> all{sources_->arguments};
  for (std::size_t i = 0; i < graph_.ops.size(); ++i) {
    const auto [first, inputs] = ranges_[i];
    const auto end = i + 1 < ranges_.size() ? ranges_[i + 1].first : all.size();
    graph_.ops[i].inputs = all.subspan(first, inputs);
    graph_.ops[i].outputs = all.subspan(first + inputs, end - first - inputs);
  }
  graph_.sources = std::move(sources_);
  return std::move(graph_);
}

} // namespace troupe::graph
