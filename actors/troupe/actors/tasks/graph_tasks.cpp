// SPDX-License-Identifier: Apache-2.0
#include <troupe/actors/tasks/graph_tasks.hpp>

#include <troupe/actors/backend/backend.hpp>
#include <troupe/actors/remote/transfer_tasks.hpp>
#include <troupe/actors/tasks/control_flow.hpp>
#include <troupe/actors/tasks/outside_task.hpp>
#include <troupe/base/assert.hpp>
#include <troupe/graph/argument.hpp>
#include <troupe/graph/ssa/storage_accesses.hpp>

#include <algorithm>

namespace troupe::actors {

namespace {

/// Visits the first version of each storage, in the order of storages.
template <class Visit>
void for_each_storage(const graph::ssa_graph& g, Visit visit) {
  std::uint32_t next = 0;
  for (auto& v : g.vars)
    if (v.storage == next) {
      visit(v);
      ++next;
    }
}

/// For dry runs.
class empty_task final : public op_task {
public:
  launch_status run(step_state&, completion&) override {
    return launch_status::done;
  }
};

/// For dry runs in which somebody stands in for the kernels.
class called_task final : public op_task {
public:
  called_task(handle_id op, const std::function<void(handle_id)>& call)
    : op_(op), call_(call) {}

  launch_status run(step_state&, completion&) override {
    call_(op_);
    return launch_status::done;
  }

private:
  handle_id op_;
  const std::function<void(handle_id)>& call_;
};

/// Runs a task only in steps that update the parameters. All devices and
/// processes agree on which these are, so no rank waits for another one.
class update_task final : public op_task {
public:
  explicit update_task(std::unique_ptr<op_task> work)
    : work_(std::move(work)) {}

  launch_status run(step_state& step, completion& whole) override {
    return step.updates ? work_->run(step, whole) : launch_status::done;
  }
  launch_status skip(step_state& step, completion& whole) override {
    return step.updates ? work_->skip(step, whole) : launch_status::done;
  }

private:
  std::unique_ptr<op_task> work_;
};

} // namespace

graph_tasks::graph_tasks(const parts& p)
  : parts_(p), graph_(*p.graph), outputs_(*p.program),
    host_memory_(make_host_memory_source()) {
  places_ = std::make_unique<storage_places>(
    number_temporaries(), static_cast<std::uint32_t>(p.slots));
  storages_.reserve(graph_.num_storages);
  tasks_.reserve(graph_.ops.size());
  find_updates_for_all();
  make_ranks();
  const auto merged = merged_storages();
  for_each_storage(graph_, [&](const graph::var_handle& v) {
    auto& memory = merged[v.storage] ? *parts_.merged_values
                                     : parts_.devices[v.device]->memory();
    if (!is_here(v.device))
      storages_.emplace_back(v.name, memory, elsewhere_);
    else if (v.persistable)
      storages_.emplace_back(
        v.name, memory,
        parts_.parameters->replica(p.where.replica_of(v.device)).var(v.name));
    else
      storages_.emplace_back(v.name, memory, *places_,
                             temporary_of_[v.storage]);
    if (v.feed && is_here(v.device))
      fed_.emplace(std::pair{v.name, v.device},
                   fed_variable{v.id, storages_.back()});
  });
}

/// Returns the number of temporaries. Those that no op of the order makes come
/// last.
std::uint32_t graph_tasks::number_temporaries() {
  temporary_of_.assign(graph_.num_storages, no_temporary);
  std::uint32_t next = 0;
  const auto number = [&](const graph::var_handle& v) {
    if (auto& known = temporary_of_[v.storage];
        known == no_temporary && is_temporary_here(v))
      known = next++;
  };
  for (auto op : parts_.order)
    for (auto output : graph_.op(op).outputs)
      number(graph_.var(output));
  for_each_storage(graph_, number);
  return next;
}

bool graph_tasks::is_temporary_here(const graph::var_handle& v) const {
  return !v.persistable && is_here(v.device);
}

storage& graph_tasks::storage_of(handle_id var) {
  return storages_[graph_.var(var).storage];
}

const graph_tasks::fed_variable*
graph_tasks::find_fed(std::string_view name, std::size_t device) const {
  const auto found = fed_.find(std::pair{name, device});
  return found == fed_.end() ? nullptr : &found->second;
}

op_task& graph_tasks::make_task(const graph::op_handle& o, stream& on) {
  auto task = make(o, on);
  const auto transfers =
    o.kind == graph::op_kind::send || o.kind == graph::op_kind::recv;
  if (o.only_in_updates && !transfers) // each step has an item
    task = std::make_unique<update_task>(std::move(task));
  return *tasks_.emplace_back(std::move(task));
}

op_task&
graph_tasks::make_empty_task(const graph::op_handle& o,
                             const std::function<void(handle_id)>& call) {
  static empty_task nothing; // stateless
  if (o.kind == graph::op_kind::fetch)
    fetches_.push_back(
      {std::string{graph_.var(o.inputs.front()).name}, o.device, o.id});
  if (call)
    return *tasks_.emplace_back(std::make_unique<called_task>(o.id, call));
  return nothing;
}

std::unique_ptr<op_task> graph_tasks::make(const graph::op_handle& o,
                                           stream& on) {
  switch (o.kind) {
  case graph::op_kind::computation: return make_kernel_task(o, on);
  case graph::op_kind::scale_loss_grad:
    return make_scale_loss_grad_task(*o.desc, *parts_.devices[o.device], on,
                                     o.shard(), storage_of(o.outputs.front()));
  case graph::op_kind::fetch: return make_fetch(o, on);
  case graph::op_kind::send:
  case graph::op_kind::recv: return make_transfer_task(o);
  case graph::op_kind::count_samples:
    return make_count_samples_task(exchange_on(o.device));
  case graph::op_kind::gather_losses:
    return make_gather_losses_task(exchange_on(o.device),
                                   storage_of(o.inputs.front()));
  default: return make_group_task(o);
  }
}

std::vector<task_argument> graph_tasks::bind_inputs(const graph::op_handle& o) {
  auto arguments = bind(o.desc->inputs, o.inputs);
  std::size_t input = 0;
  for (auto& a : arguments)
    if (a.value)
      a.distance = graph_.distance_of(o.id, input++);
  return arguments;
}

std::vector<task_argument>
graph_tasks::bind(const std::vector<op_slot>& slots,
                  std::span<const handle_id> handles) {
  std::vector<task_argument> arguments;
  arguments.reserve(handles.size()); // including absent ones
  auto next = handles.begin();
  for (auto& s : slots)
    for (auto& name : s.arguments)
      if (graph::names_variable(name)) {
        TROUPE_ASSERT(next != handles.end());
        arguments.push_back({&storage_of(*next++)});
      } else {
        arguments.push_back({nullptr});
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

const task_place& graph_tasks::place_of(const graph::op_handle& o, stream& on) {
  return places_of_tasks_
    .try_emplace({&on, o.shard()},
                 task_place{*parts_.devices[o.device], o.shard(), on,
                            parts_.slots, task_memory_})
    .first->second;
}

std::unique_ptr<op_task>
graph_tasks::make_kernel_task(const graph::op_handle& o, stream& on) {
  if (auto outside = make_outside(o, on))
    return outside;
  auto& queue = updates_for_all(o) ? wide_stream(o.device) : on;
  return make_computation_task(
    *o.desc, place_of(o, queue),
    outputs_.of(make_op_kernel(*parts_.program, *o.desc, *parts_.kernels,
                               graph_.devices[o.device].kind),
                *o.desc),
    bind_inputs(o), bind(o.desc->outputs, o.outputs), parts_.check_nan);
}

std::unique_ptr<op_task> graph_tasks::make_outside(const graph::op_handle& o,
                                                   stream& on) {
  if (!parts_.outside_ops)
    return nullptr;
  const auto found = parts_.outside_ops->find(o.desc->type);
  if (found == parts_.outside_ops->end())
    return nullptr;
  auto answers = std::make_unique<answer_kernel>();
  auto& filled = *answers;
  return make_outside_task(*o.desc, place_of(o, on), found->second,
                           outputs_.of(std::move(answers), *o.desc), filled,
                           bind_inputs(o), bind(o.desc->outputs, o.outputs));
}

std::unique_ptr<op_task> graph_tasks::make_fetch(const graph::op_handle& o,
                                                 stream& on) {
  const auto& v = graph_.var(o.inputs.front());
  fetches_.push_back({std::string{v.name}, o.device, o.id});
  return make_fetch_task(*parts_.devices[o.device], on, fetches_.size() - 1,
                         storage_of(v.id), host_memory_);
}

std::unique_ptr<op_task>
graph_tasks::make_transfer_task(const graph::op_handle& o) {
  TROUPE_ASSERT(parts_.transfers);
  const auto sends = o.kind == graph::op_kind::send;
  const auto end = sends ? &graph::transfer::send : &graph::transfer::recv;
  const auto found = std::ranges::lower_bound(graph_.transfers, o.id, {}, end);
  TROUPE_ASSERT(found != graph_.transfers.end() && (*found).*end == o.id);
  const auto channel =
    static_cast<std::uint32_t>(found - graph_.transfers.begin());
  return sends
           ? make_send_task(*parts_.transfers, channel,
                            storage_of(o.inputs.front()), o.only_in_updates)
           : make_recv_task(*parts_.transfers, channel,
                            storage_of(o.outputs.front()), o.only_in_updates);
}

std::unique_ptr<op_task>
graph_tasks::make_group_task(const graph::op_handle& o) {
  return graph_.rank_collectives ? make_task_of_rank(o) : make_joint_task(o);
}

// On each device, order edges lead from each collective to the next. All
// devices therefore make the same calls in the same order.
std::unique_ptr<op_task>
graph_tasks::make_task_of_rank(const graph::op_handle& o) {
  return make_rank_task(o.kind, o.root, *ranks_, o.device,
                        storages_of(o.inputs), storages_of(o.outputs));
}

void graph_tasks::make_ranks() {
  std::uint64_t calls = 0, in_updates = 0;
  for (auto& o : graph_.ops)
    if (o.collective_index >= 0 && o.device == 0)
      ++(o.only_in_updates ? in_updates : calls);
  if (!graph_.rank_collectives || calls + in_updates == 0)
    return;
  const auto devices = graph_.devices.size();
  ranks_ = std::make_unique<collective_ranks>(devices, calls, in_updates,
                                              parts_.slots);
  bool all_are_here = true;
  for (std::size_t d = 0; d < devices; ++d)
    all_are_here &= is_here(d);
  if (all_are_here)
    ranks_->join(make_group(all_devices(), group_options()));
}

/// By storage: whether its values are merged in memory of a group.
std::vector<bool> graph_tasks::merged_storages() const {
  std::vector<bool> merged(graph_.num_storages);
  if (!parts_.merged_values)
    return merged;
  for (auto& o : graph_.ops)
    if (o.collective_index >= 0 && is_here(o.device)
        && o.kind != graph::op_kind::gather_losses)
      for (auto id : o.inputs)
        if (const auto& v = graph_.var(id); !v.persistable)
          merged[v.storage] = true;
  return merged;
}

// The handle lists the variables in order, and within each variable the devices
// in order. A broadcast reads only its root, a reduce writes only its root.
std::unique_ptr<op_task>
graph_tasks::make_joint_task(const graph::op_handle& o) {
  const auto ranks = all_devices();
  const auto on_all = std::max(o.inputs.size(), o.outputs.size());
  std::vector<collective_group> groups(on_all / ranks.size());
  const auto cut = [&](std::span<const handle_id> vars,
                       std::vector<storage> collective_group::*into) {
    const auto each = vars.size() / groups.size();
    for (std::size_t i = 0; i < groups.size(); ++i)
      groups[i].*into = storages_of(vars.subspan(i * each, each));
  };
  cut(o.inputs, &collective_group::inputs);
  cut(o.outputs, &collective_group::outputs);
  return make_collective_task(o.kind, o.root, ranks, std::move(groups),
                              group_options());
}

exchange_place graph_tasks::exchange_on(std::size_t device) {
  TROUPE_ASSERT(ranks_); // these collectives have a handle per device
  return {*ranks_, *parts_.devices[device], device,
          parts_.merged_values ? *parts_.merged_values : host_memory_,
          parts_.where};
}

std::vector<storage> graph_tasks::storages_of(std::span<const handle_id> vars) {
  std::vector<storage> result;
  for (auto v : vars)
    result.push_back(storage_of(v));
  return result;
}

std::vector<device*> graph_tasks::all_devices() const {
  std::vector<device*> result;
  for (auto& d : parts_.devices)
    result.push_back(d.get());
  return result;
}

} // namespace troupe::actors
