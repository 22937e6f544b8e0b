// SPDX-License-Identifier: Apache-2.0
#include <troupe/actors/actor_graph.hpp>

#include <troupe/actors/control_flow.hpp>
#include <troupe/actors/op_tasks.hpp>
#include <troupe/base/assert.hpp>
#include <troupe/base/clock.hpp>

#include <algorithm>
#include <set>

namespace troupe::actors {

namespace {

/// Paddle's name for an argument that is not there.
constexpr std::string_view empty_argument = "@EMPTY@";

bool is_present(const std::string& argument) {
  return !argument.empty() && argument != empty_argument;
}

bool in_message_form(edge_form form, std::size_t number) {
  return form == edge_form::message
         || (form == edge_form::mixed && number % 2 == 1);
}

} // namespace

actor_graph::actor_graph(const parts& p)
  : parts_(p), graph_(*p.graph), host_memory_(make_host_memory_source()) {
  const auto& options = *p.options;
  for (auto& d : graph_.devices)
    context_.devices.push_back(to_string(d));
  context_.graph = &graph_;
  context_.trace = options.trace;
  context_.dry_run = options.dry_run;
  if (options.shuffle)
    context_.shuffle_seed = options.shuffle->seed + 1; // 0 means off
  make_streams();
  // Where steps do not overlap, the direct form sends nothing to the next one.
  const auto between_steps = options.steps_in_flight + graph_.max_distance();
  const auto direct_slots = options.steps_in_flight > 1 ? between_steps : 1;
  in_direct_form_ = can_go_direct(direct_slots);
  make_steps(in_direct_form_ ? direct_slots : between_steps);
  make_storages();
  if (in_direct_form_) {
    make_direct();
    return;
  }
  make_op_actors();
  make_var_actors();
  wire();
  add_starts();
  const grouped<std::uint32_t> used{graph_.ops.size(), uses_};
  for (auto& o : graph_.ops)
    if (auto* a = op(o.id)) {
      std::vector<storage*> releases;
      for (auto s : used[o.id])
        releases.push_back(&storages_[s]);
      a->releases(std::move(releases));
      a->arm();
    }
}

actor_graph::~actor_graph() {
  // Late callbacks of device streams come first, then workers that are still
  // on their way out of a stream's drain.
  for (auto* s : streams_)
    s->close();
  parts_.workers->queue().quiesce();
  // Others may hold the actors' addresses, but nothing behind them stays.
  retire();
  for (auto& a : actors_)
    if (a)
      object_of<wired_actor>(a).forget();
}

void actor_graph::retire() {
  for (auto* all : {&actors_, &stream_handles_})
    for (auto& a : *all)
      if (a)
        object_of<actor_base>(a).retire();
  std::lock_guard guard{asking_};
  for (auto& [id, a] : addresses_)
    object_of<actor_base>(a).retire();
}

bool actor_graph::idle() const noexcept {
  for (auto* s : streams_)
    if (!s->idle())
      return false;
  if (direct_)
    return direct_->idle();
  for (auto& o : graph_.ops)
    if (auto* a = op(o.id); a && !a->task().idle())
      return false;
  return true;
}

void actor_graph::make_steps(std::uint32_t slots) {
  for (std::uint32_t slot = 0; slot < slots; ++slot) {
    auto& step = *context_.steps.emplace_back(std::make_unique<step_state>());
    step.slot = slot;
    step.devices.resize(graph_.devices.size());
  }
}

// -- streams ------------------------------------------------------------------

template <class T>
T* actor_graph::make_stream(std::size_t device, const char* name, int width) {
  auto& on = *parts_.devices[device];
  const auto& shuffle = parts_.options->shuffle;
  const auto full_name = std::string{name} + "@" + to_string(on.id());
  stream_handles_.push_back(make<T>(
    *parts_.system, full_name, on.make_stream({name, width}),
    parts_.workers->queue(), device,
    context_.shuffle_seed ? context_.shuffle_seed * 31 + streams_.size() : 0,
    shuffle ? shuffle->max_delay_us : 0));
  auto& made = object_of<T>(stream_handles_.back());
  streams_.push_back(&made);
  return &made;
}

void actor_graph::make_streams() {
  // Several workers for a device: its ops go to them directly. One or less:
  // a serial stream keeps the device's data in one core's cache.
  const auto workers = parts_.workers->queue().workers();
  const auto wide = workers / graph_.devices.size() > 1;
  const auto width = wide ? static_cast<int>(workers) : 1;
  for (std::size_t d = 0; d < graph_.devices.size(); ++d)
    device_streams_.push_back({make_stream<stream_actor>(d, "compute", width),
                               make_stream<stream_actor>(d, "fetch", 1)});
  std::vector<all_reduce_actor::turn> order;
  for (auto& o : graph_.ops)
    if (o.collective_index >= 0 && is_here(o.id))
      order.push_back({o.collective_index, handle_name(graph_, o.id)});
  std::sort(order.begin(), order.end(),
            [](auto& a, auto& b) { return a.index < b.index; });
  if (order.empty())
    return;
  all_reduce_ = make_stream<all_reduce_actor>(0, "collective", 1);
  all_reduce_->set_order(std::move(order));
}

stream_actor& actor_graph::stream_of(const graph::op_handle& o) const {
  switch (o.stream) {
  case graph::stream_kind::collective: return *all_reduce_;
  case graph::stream_kind::fetch: return *device_streams_[o.device].fetch;
  case graph::stream_kind::compute: break;
  }
  return *device_streams_[o.device].compute;
}

// -- storages -----------------------------------------------------------------

/// Ops that release a temporary. Direct form: edges put all other users before
/// the readers of the last version. Otherwise everyone counts: a message to
/// another process carries the value after a reader here may be done with it.
void actor_graph::list_users(const graph::storage_accesses& s,
                             std::vector<handle_id>& users) const {
  users.clear();
  for (auto v = s.versions.rbegin(); v != s.versions.rend(); ++v) {
    std::ranges::copy_if(v->readers, std::back_inserter(users),
                         [this](handle_id o) { return is_here(o); });
    if (v->writer != no_handle && is_here(v->writer)
        && (!in_direct_form_ || users.empty()))
      users.push_back(v->writer);
    if (in_direct_form_ && !users.empty())
      return;
  }
  std::ranges::sort(users);
  users.erase(std::unique(users.begin(), users.end()), users.end());
}

void actor_graph::make_storages() {
  const graph::access_list accesses{graph_};
  places_ = std::make_unique<storage_places>(
    std::ranges::count_if(accesses, [](auto& s) { return !s.persistable; }),
    context_.slots());
  storages_.reserve(graph_.num_storages);
  std::uint32_t temporaries = 0;
  std::vector<handle_id> users;
  for (auto& s : accesses) {
    const auto& v = graph_.var(s.versions.front().var);
    auto& memory = parts_.devices[v.device]->memory();
    if (s.persistable) {
      storages_.emplace_back(v.name, memory,
                             parts_.parameters->replica(v.device).var(v.name));
      continue;
    }
    list_users(s, users);
    for (auto user : users)
      uses_.push_back({user, v.storage});
    auto& made =
      storages_.emplace_back(v.name, memory, *places_, temporaries++,
                             static_cast<std::uint32_t>(users.size()));
    if (v.feed)
      fed_.emplace(std::pair{v.name, v.device}, made);
  }
}

storage& actor_graph::storage_of(handle_id var) {
  return storages_[graph_.var(var).storage];
}

const storage* actor_graph::find_fed(std::string_view name,
                                     std::size_t device) const {
  auto found = fed_.find(std::pair{name, device});
  return found == fed_.end() ? nullptr : &found->second;
}

// -- actors -------------------------------------------------------------------

bool actor_graph::is_here(handle_id id) const {
  return parts_.where.is_here(graph_.is_op(id) ? graph_.op(id).device
                                               : graph_.var(id).device);
}

wired_actor* actor_graph::actor(handle_id id) const {
  return actors_[id] ? &object_of<wired_actor>(actors_[id]) : nullptr;
}

op_actor* actor_graph::op(handle_id id) const {
  return static_cast<op_actor*>(actor(id));
}

caf::strong_actor_ptr actor_graph::address(handle_id id) {
  if (!direct_)
    return actors_[id];
  std::lock_guard guard{asking_};
  auto& known = addresses_[id];
  if (!known)
    known = make<direct_actor>(*parts_.system, context_, id, *direct_);
  return known;
}

void actor_graph::make_op_actors() {
  actors_.resize(graph_.size());
  for (auto& o : graph_.ops) {
    if (!is_here(o.id))
      continue;
    actors_[o.id] =
      make<op_actor>(*parts_.system, context_, o, handle_name(graph_, o.id),
                     make_task(o), stream_of(o));
    op(o.id)->add_in_edge(nullptr, nullptr, 1); // from itself
  }
}

void actor_graph::make_var_actors() {
  std::vector<std::size_t> readers(graph_.vars.size());
  const graph::access_list accesses{graph_};
  for (auto& s : accesses)
    for (auto& v : s.versions)
      readers[v.var - graph_.ops.size()] =
        static_cast<std::size_t>(std::ranges::count_if(
          v.readers, [this](handle_id o) { return is_here(o); }));
  for (auto& v : graph_.vars)
    if (is_here(v.id))
      actors_[v.id] = make<var_actor>(
        *parts_.system, context_, v.id, handle_name(graph_, v.id),
        storage_of(v.id), readers[v.id - graph_.ops.size()]);
}

std::unique_ptr<op_task> actor_graph::make_task(const graph::op_handle& o) {
  auto& on = *parts_.devices[o.device];
  switch (o.kind) {
  case graph::op_kind::computation: return make_kernel_task(o);
  case graph::op_kind::scale_loss_grad:
    return make_scale_loss_grad_task(*o.desc, on, o.device,
                                     storage_of(o.outputs.front()));
  case graph::op_kind::fetch: {
    const auto& v = graph_.var(o.inputs.front());
    fetches_.push_back({std::string{v.name}, v.device});
    return make_fetch_task(on, fetches_.size() - 1,
                           storage_of(o.inputs.front()), host_memory_);
  }
  default: return make_group_task(o);
  }
}

std::vector<task_argument>
actor_graph::bind(const std::vector<graph::op_slot>& slots,
                  std::span<const handle_id> handles) {
  std::vector<task_argument> arguments;
  auto next = handles.begin();
  for (auto& s : slots)
    for (auto& name : s.arguments)
      if (is_present(name)) {
        TROUPE_ASSERT(next != handles.end());
        arguments.push_back({s.name, &storage_of(*next++)});
      } else {
        arguments.push_back({s.name, nullptr});
      }
  return arguments;
}

std::unique_ptr<op_task>
actor_graph::make_kernel_task(const graph::op_handle& o) {
  return make_computation_task(
    *o.desc,
    {*parts_.devices[o.device], o.device, stream_of(o).device_stream(),
     context_.steps, task_memory_},
    make_op_kernel(*parts_.program, *o.desc, *parts_.kernels,
                   graph_.devices[o.device].kind),
    bind(o.desc->inputs, o.inputs), bind(o.desc->outputs, o.outputs),
    parts_.options->check_nan);
}

std::unique_ptr<op_task>
actor_graph::make_group_task(const graph::op_handle& o) {
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
                              std::move(groups), parts_.workers->queue(),
                              parts_.options->deterministic);
}

// -- wiring -------------------------------------------------------------------

bool actor_graph::can_go_direct(std::uint32_t slots) const {
  const auto& options = *parts_.options;
  return options.form == edge_form::counter && !options.trace && !options.nodes
         && direct_graph::has_room(slots, streams_.size())
         && std::ranges::all_of(streams_, [](stream_actor* s) {
              return s->device_stream().completes_at_launch();
            });
}

void actor_graph::make_direct() {
  direct_graph::parts p;
  p.context = &context_;
  p.streams = &streams_;
  for (auto& o : graph_.ops) {
    const auto stream =
      std::find(streams_.begin(), streams_.end(), &stream_of(o));
    p.stream_of.push_back(static_cast<std::uint8_t>(stream - streams_.begin()));
    p.tasks.push_back(make_task(o));
  }
  for (auto& [user, used] : uses_)
    used = storages_[used].temporary();
  if (!context_.dry_run)
    p.uses = std::move(uses_);
  p.places = places_.get();
  p.overlap = parts_.options->steps_in_flight > 1;
  direct_ =
    std::make_unique<direct_graph>(std::move(p), graph::op_order{graph_});
  ends_per_step_ = direct_->ends_per_step();
  std::vector<storage>{}.swap(storages_); // tasks have what they need of them
}

void actor_graph::wire() {
  in_edges_.assign(graph_.size(), 1); // an op's edge 0 is from itself
  std::vector<bool> has_successor(graph_.ops.size());
  for (std::size_t n = 0; n < graph_.edges.size(); ++n) {
    const auto& e = graph_.edges[n];
    wire_edge(e, n);
    if (e.distance > 0)
      continue;
    // An op whose variable is read by another op ends before that one does.
    if (graph_.is_op(e.from) && graph_.is_op(e.to))
      has_successor[e.from] = true;
    if (!graph_.is_op(e.from) && graph_.var(e.from).generator != no_handle)
      has_successor[graph_.var(e.from).generator] = true;
  }
  for (auto& o : graph_.ops)
    if (auto* a = op(o.id)) {
      const auto ends = !has_successor[o.id]
                        || !stream_of(o).device_stream().completes_at_launch();
      a->ends_step(ends);
      ends_per_step_ += ends;
    }
}

void actor_graph::wire_edge(const graph::edge& e, std::size_t number) {
  const auto in_edge = in_edges_[e.to]++;
  auto* from = actor(e.from);
  auto* to = actor(e.to);
  const auto carries_value = e.kind == graph::edge_kind::data;
  auto* value = !carries_value         ? nullptr
                : graph_.is_op(e.from) ? &storage_of(e.to)
                                       : &storage_of(e.from);
  // Whose tickets come along: a variable passes on those of its generator.
  const auto source =
    graph_.is_op(e.from) ? e.from : graph_.var(e.from).generator;
  auto* producer =
    source != no_handle && actor(source) ? &op(source)->on_stream() : nullptr;
  if (to) {
    const auto announced = to->add_in_edge(producer, value, e.distance);
    TROUPE_ASSERT(!graph_.is_op(e.to) || announced == in_edge);
  }
  if (!from) {
    if (to) {
      to->mark_remote(in_edge);
      remote_in_edges_.emplace_back(to, in_edge);
    }
    return;
  }
  port p;
  p.in_edge = in_edge;
  p.distance = e.distance;
  p.to = e.to;
  if (!to) {
    p.kind = port::form::remote;
    p.value = value;
  } else if (in_message_form(parts_.options->form, number)) {
    p.kind = port::form::message;
    p.address = actors_[e.to];
  } else {
    p.receiver = to;
  }
  if (to && !graph_.is_op(e.to))
    p.needs = phase::both; // a variable passes on whatever is announced
  else if (to && producer && &op(e.to)->on_stream() != producer
           && !op(e.to)->on_stream().can_wait_for(*producer))
    p.needs = phase::finished;
  else if (to && producer)
    p.needs = phase::launched;
  from->add_port(std::move(p));
}

void actor_graph::add_starts() {
  std::vector<bool> waits(graph_.ops.size());
  for (auto& e : graph_.edges)
    if (e.distance == 0 && graph_.is_op(e.to))
      waits[e.to] = true;
  for (auto& v : graph_.vars)
    if (v.feed && actor(v.id))
      starts_.emplace_back(actor(v.id), 0);
  // With other processes around, a message may come before the step is
  // admitted here: then every op waits for the admission.
  const auto all = !parts_.where.process_of_device.empty();
  for (auto& o : graph_.ops)
    if (auto* a = op(o.id); a && (all || !waits[o.id]))
      starts_.emplace_back(a, a->add_in_edge(nullptr, nullptr, 0));
}

void actor_graph::start(std::uint32_t slot) {
  if (direct_)
    direct_->start(slot);
  for (auto& [to, in_edge] : starts_) {
    if (context_.trace)
      context_.trace->record({trace_kind::message, no_handle, to->handle(),
                              context_.steps[slot]->id, now_ns()});
    to->arrive(in_edge, {slot, phase::both, false, 0});
  }
}

std::size_t actor_graph::messages_per_step() const noexcept {
  if (direct_)
    return direct_->messages_per_step();
  auto count = starts_.size();
  for (auto& a : actors_)
    if (a)
      count += object_of<wired_actor>(a).ports().size();
  return count;
}

// -- other processes ----------------------------------------------------------

std::vector<handle_id> actor_graph::remote_receivers() const {
  std::set<handle_id> ids;
  for (auto& a : actors_)
    if (a)
      for (auto& p : object_of<wired_actor>(a).ports())
        if (p.kind == port::form::remote)
          ids.insert(p.to);
  return {ids.begin(), ids.end()};
}

void actor_graph::make_up_remote(std::uint32_t slot) {
  for (auto& [to, in_edge] : remote_in_edges_)
    to->make_up(in_edge, slot);
}

void actor_graph::connect(handle_id id, const caf::strong_actor_ptr& address) {
  for (auto& a : actors_)
    if (a)
      object_of<wired_actor>(a).connect(id, address);
}

} // namespace troupe::actors
