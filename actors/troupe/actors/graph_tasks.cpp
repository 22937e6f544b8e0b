// SPDX-License-Identifier: Apache-2.0
#include <troupe/actors/graph_tasks.hpp>

#include <troupe/actors/control_flow.hpp>
#include <troupe/base/assert.hpp>
#include <troupe/graph/argument.hpp>
#include <troupe/graph/storage_accesses.hpp>
#include <troupe/kernels/shared_memory.hpp>

#include <algorithm>

namespace troupe::actors {

namespace {

/// The first version of each storage, in the order of storages.
template <class Visit>
void for_each_storage(const graph::ssa_graph& g, Visit visit) {
  std::uint32_t next = 0;
  for (auto& v : g.vars)
    if (v.storage == next) {
      visit(v);
      ++next;
    }
}

void list_last_users(const graph::storage_accesses& s,
                     std::vector<handle_id>& users) {
  users.clear();
  for (auto v = s.versions.rbegin(); v != s.versions.rend(); ++v) {
    users.assign(v->readers.begin(), v->readers.end());
    if (users.empty() && v->writer != no_handle)
      users.push_back(v->writer);
    if (!users.empty())
      return;
  }
}

void list_users(const graph::storage_accesses& s,
                std::vector<handle_id>& users) {
  users.clear();
  for (auto& v : s.versions) {
    users.insert(users.end(), v.readers.begin(), v.readers.end());
    if (v.writer != no_handle)
      users.push_back(v.writer);
  }
  std::ranges::sort(users);
  users.erase(std::unique(users.begin(), users.end()), users.end());
}

/// Calls `visit(user, temporary)` for what `list(storage, users)` lists.
template <class List, class Visit>
void for_each_use(const graph::ssa_graph& g, List list, Visit visit) {
  const graph::access_list accesses{g};
  std::vector<handle_id> users;
  std::uint32_t temporary = 0;
  for (auto& s : accesses) {
    if (s.persistable)
      continue;
    list(s, users);
    for (auto user : users)
      visit(user, temporary);
    ++temporary;
  }
}

} // namespace

graph_tasks::graph_tasks(const parts& p)
  : parts_(p), graph_(*p.graph), host_memory_(make_host_memory_source()) {
  std::size_t temporaries = 0;
  for_each_storage(graph_, [&](auto& v) { temporaries += !v.persistable; });
  places_ = std::make_unique<storage_places>(
    temporaries, static_cast<std::uint32_t>(p.steps.size()));
  storages_.reserve(graph_.num_storages);
  find_updates_for_all();
  std::uint32_t temporary = 0;
  for_each_storage(graph_, [&](const graph::var_handle& v) {
    auto& memory = parts_.devices[v.device]->memory();
    if (v.persistable)
      storages_.emplace_back(v.name, memory,
                             parts_.parameters->replica(v.device).var(v.name));
    else
      storages_.emplace_back(v.name, memory, *places_, temporary++);
    if (v.feed)
      fed_.emplace(std::pair{v.name, v.device}, storages_.back());
  });
}

storage& graph_tasks::storage_of(handle_id var) {
  return storages_[graph_.var(var).storage];
}

const storage* graph_tasks::find_fed(std::string_view name,
                                     std::size_t device) const {
  const auto found = fed_.find(std::pair{name, device});
  return found == fed_.end() ? nullptr : &found->second;
}

std::vector<graph_tasks::use> graph_tasks::last_uses() const {
  std::vector<use> uses;
  for_each_use(graph_, list_last_users,
               [&](handle_id user, std::uint32_t temporary) {
                 uses.emplace_back(user, temporary);
               });
  return uses;
}

std::vector<graph_tasks::use>
graph_tasks::all_uses(const std::function<bool(handle_id)>& counts) const {
  std::vector<use> uses;
  for_each_use(graph_, list_users,
               [&](handle_id user, std::uint32_t temporary) {
                 if (counts(user))
                   uses.emplace_back(user, temporary);
               });
  return uses;
}

std::unique_ptr<op_task> graph_tasks::make_task(const graph::op_handle& o,
                                                stream& on) {
  switch (o.kind) {
  case graph::op_kind::computation: return make_kernel_task(o, on);
  case graph::op_kind::scale_loss_grad:
    return make_scale_loss_grad_task(*o.desc, *parts_.devices[o.device],
                                     o.device, storage_of(o.outputs.front()));
  case graph::op_kind::fetch: return make_fetch(o);
  default: return make_group_task(o);
  }
}

std::vector<task_argument>
graph_tasks::bind(const std::vector<graph::op_slot>& slots,
                  std::span<const handle_id> handles) {
  std::vector<task_argument> arguments;
  auto next = handles.begin();
  for (auto& s : slots)
    for (auto& name : s.arguments)
      if (graph::names_variable(name)) {
        TROUPE_ASSERT(next != handles.end());
        arguments.push_back({s.name, &storage_of(*next++)});
      } else {
        arguments.push_back({s.name, nullptr});
      }
  return arguments;
}

void graph_tasks::find_updates_for_all() {
  wide_streams_.resize(parts_.devices.size());
  if (wide_streams_.size() < 2 || !share_memory(graph_.devices))
    return;
  std::vector<const graph::op_desc*> updates;
  for (auto& o : graph_.ops)
    if (o.kind == graph::op_kind::computation
        && o.desc->role() == graph::role_optimize)
      updates.push_back(o.desc);
  std::ranges::sort(updates);
  for (auto* desc : updates)
    if (std::ranges::equal_range(updates, desc).size() == 1)
      updates_for_all_.push_back(desc);
}

bool graph_tasks::updates_for_all(const graph::op_handle& o) const {
  return std::ranges::binary_search(updates_for_all_, o.desc);
}

stream& graph_tasks::wide_stream(std::size_t device) {
  auto& made = wide_streams_[device];
  if (!made)
    made = parts_.devices[device]->make_stream(
      {"update", static_cast<int>(parts_.workers), parts_.helpers});
  return *made;
}

std::unique_ptr<op_task>
graph_tasks::make_kernel_task(const graph::op_handle& o, stream& on) {
  auto& queue = updates_for_all(o) ? wide_stream(o.device) : on;
  return make_computation_task(
    *o.desc,
    {*parts_.devices[o.device], o.device, queue, parts_.steps, task_memory_},
    make_op_kernel(*parts_.program, *o.desc, *parts_.kernels,
                   graph_.devices[o.device].kind),
    bind(o.desc->inputs, o.inputs), bind(o.desc->outputs, o.outputs),
    parts_.check_nan);
}

std::unique_ptr<op_task> graph_tasks::make_fetch(const graph::op_handle& o) {
  const auto& v = graph_.var(o.inputs.front());
  fetches_.push_back({std::string{v.name}, o.device});
  return make_fetch_task(*parts_.devices[o.device], fetches_.size() - 1,
                         storage_of(v.id), host_memory_);
}

std::unique_ptr<op_task>
graph_tasks::make_group_task(const graph::op_handle& o) {
  std::vector<device*> ranks;
  for (auto& d : parts_.devices)
    ranks.push_back(d.get());
  // Inputs come variable by variable, devices in order within each; a
  // broadcast reads its root alone, a reduce writes its root alone.
  const auto reads = o.kind == graph::op_kind::broadcast ? 1 : ranks.size();
  const auto writes = o.kind == graph::op_kind::reduce ? 1 : ranks.size();
  std::vector<collective_group> groups(o.inputs.size() / reads);
  for (std::size_t g = 0; g < groups.size(); ++g) {
    for (std::size_t i = 0; i < reads; ++i)
      groups[g].inputs.push_back(storage_of(o.inputs[g * reads + i]));
    for (std::size_t i = 0; i < writes; ++i)
      groups[g].outputs.push_back(storage_of(o.outputs[g * writes + i]));
  }
  return make_collective_task(o.kind, o.root, std::move(ranks),
                              std::move(groups), parts_.helpers, parts_.workers,
                              parts_.deterministic);
}

} // namespace troupe::actors
