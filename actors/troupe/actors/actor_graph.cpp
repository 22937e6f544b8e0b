// SPDX-License-Identifier: Apache-2.0
#include <troupe/actors/actor_graph.hpp>

#include <troupe/base/assert.hpp>
#include <troupe/base/clock.hpp>
#include <troupe/graph/storage_accesses.hpp>

#include <algorithm>
#include <set>

namespace troupe::actors {

namespace {

bool in_message_form(edge_form form, std::size_t number) {
  return form == edge_form::message
         || (form == edge_form::mixed && number % 2 == 1);
}

} // namespace

actor_graph::actor_graph(const parts& p)
  : parts_(p), graph_(*p.graph), helpers_(p.workers->queue(), p.options->trace),
    spread_(p.graph->ops.size()) {
  const auto& options = *p.options;
  for (auto& d : graph_.devices)
    context_.devices.push_back(to_string(d));
  context_.graph = &graph_;
  context_.trace = options.trace;
  context_.helpers = &helpers_;
  context_.dry_run = options.dry_run;
  context_.messages_within = options.form != edge_form::counter;
  if (options.shuffle)
    context_.shuffle_seed = options.shuffle->seed + 1; // 0 means off
  make_streams();
  // Where steps do not overlap, the direct form sends nothing to the next one.
  const auto between_steps = options.steps_in_flight + graph_.max_distance();
  const auto direct_slots = options.steps_in_flight > 1 ? between_steps : 1;
  in_direct_form_ = can_go_direct(direct_slots);
  make_steps(in_direct_form_ ? direct_slots : between_steps);
  tasks_ = std::make_unique<graph_tasks>(
    graph_tasks::parts{p.program, p.graph, p.devices, p.parameters, p.kernels,
                       context_.steps, &helpers_, p.workers->queue().workers(),
                       options.deterministic, options.check_nan});
  if (in_direct_form_) {
    make_direct();
    return;
  }
  make_op_actors();
  make_var_actors();
  wire();
  add_starts();
  count_users();
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
  return helpers_.idle()
         && std::all_of(streams_.begin(), streams_.end(),
                        [](auto* s) { return s->idle(); });
}

void actor_graph::make_steps(std::uint32_t slots) {
  for (std::uint32_t slot = 0; slot < slots; ++slot) {
    auto& step = *context_.steps.emplace_back(std::make_unique<step_state>());
    step.slot = slot;
    step.devices.resize(graph_.devices.size());
    for (auto& shard : step.devices)
      shard.stop = &step.failed;
  }
}

// -- streams ------------------------------------------------------------------

template <class T>
T* actor_graph::make_stream(std::size_t device, const char* name, int width,
                            std::size_t home) {
  auto& on = *parts_.devices[device];
  const auto& shuffle = parts_.options->shuffle;
  const auto full_name = std::string{name} + "@" + to_string(on.id());
  stream_handles_.push_back(make<T>(
    *parts_.system, full_name, on.make_stream({name, width, &helpers_}),
    parts_.workers->queue(), home,
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
  for (std::size_t d = 0; d < graph_.devices.size(); ++d) {
    const auto home = wide ? stream_actor::no_home : d;
    device_streams_.push_back(
      {make_stream<stream_actor>(d, "compute", width, home),
       make_stream<stream_actor>(d, "fetch", 1, home)});
  }
  std::vector<all_reduce_actor::turn> order;
  for (auto& o : graph_.ops)
    if (o.collective_index >= 0 && is_here(o.id))
      order.push_back({o.collective_index, handle_name(graph_, o.id)});
  std::sort(order.begin(), order.end(),
            [](auto& a, auto& b) { return a.index < b.index; });
  if (order.empty())
    return;
  // No home: where the last of a collective's values was made, or where a
  // worker has nothing to do.
  all_reduce_ =
    make_stream<all_reduce_actor>(0, "collective", 1, stream_actor::no_home);
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

void actor_graph::took(std::uint64_t step_ns) noexcept {
  if (parts_.workers->queue().workers() == 1)
    return;
  const auto before = spread_.gathered();
  if (before)
    gathered_steps_.fetch_add(1, std::memory_order_relaxed);
  spread_.took(step_ns);
  if (spread_.gathered() != before)
    for (auto* s : streams_)
      s->gather(spread_.gathered());
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
    actors_[o.id] = make<op_actor>(
      *parts_.system, context_, o, handle_name(graph_, o.id),
      tasks_->make_task(o, stream_of(o).device_stream()), stream_of(o));
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
        tasks_->storage_of(v.id), readers[v.id - graph_.ops.size()]);
}

// Everyone counts here: a message to another process carries a value after its
// readers in this one may be done with it.
void actor_graph::count_users() {
  const auto uses =
    tasks_->all_uses([this](handle_id user) { return is_here(user); });
  const grouped<std::uint32_t> used{graph_.ops.size(), uses};
  std::vector<std::uint32_t> users(tasks_->places().temporaries());
  for (auto& [user, temporary] : uses)
    ++users[temporary];
  for (std::uint32_t t = 0; t < users.size(); ++t)
    tasks_->places().expect(t, users[t]);
  for (auto& o : graph_.ops)
    if (auto* a = op(o.id)) {
      a->releases(tasks_->places(), used[o.id]);
      a->arm();
    }
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
    p.tasks.push_back(tasks_->make_task(o, stream_of(o).device_stream()));
  }
  if (!context_.dry_run)
    p.uses = tasks_->last_uses();
  p.places = &tasks_->places();
  using ordered = graph::op_order::scope;
  const auto overlap = parts_.options->steps_in_flight > 1;
  direct_ = std::make_unique<direct_graph>(
    std::move(p),
    graph::op_order{graph_, overlap ? ordered::all_steps : ordered::one_step});
  ends_per_step_ = direct_->ends_per_step();
  tasks_->forget_storages();
}

void actor_graph::wire() {
  in_edges_.assign(graph_.size(), 1); // an op's edge 0 is from itself
  std::vector<bool> has_successor(graph_.ops.size());
  for (std::size_t n = 0; n < graph_.edges.size(); ++n) {
    const auto& e = graph_.edges[n];
    wire_edge(e, n);
    if (e.distance > 0 || !is_here(e.to))
      continue;
    // An op whose variable is read by another op ends before that one does. Of
    // ops in other processes this one hears nothing.
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
                : graph_.is_op(e.from) ? &tasks_->storage_of(e.to)
                                       : &tasks_->storage_of(e.from);
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
