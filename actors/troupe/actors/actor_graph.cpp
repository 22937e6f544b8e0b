// SPDX-License-Identifier: Apache-2.0
#include <troupe/actors/actor_graph.hpp>

#include <troupe/actors/engine/all_reduce_actor.hpp>
#include <troupe/actors/handle_actor.hpp>

#include <troupe/graph/passes/delayed_inputs.hpp>
#include <troupe/graph/ssa/ssa_edges.hpp>

#include <algorithm>
#include <bit>
#include <utility>

namespace troupe::actors {

namespace {

std::uint32_t oldest_input_of(const graph::ssa_graph& g) {
  std::uint32_t oldest = 0;
  for (auto& d : g.delayed_inputs)
    oldest = std::max(oldest, d.distance);
  return oldest;
}

/// The collectives that run on a device, in order.
std::vector<all_reduce_actor::turn> turns_on(const graph::ssa_graph& g,
                                             std::size_t device) {
  std::vector<all_reduce_actor::turn> turns;
  for (auto& o : g.ops)
    if (o.collective_index >= 0 && o.device == device)
      turns.push_back({o.collective_index, handle_name(g, o.id)});
  std::ranges::sort(turns, {}, &all_reduce_actor::turn::index);
  return turns;
}

/// Picks `wanted` elements of `from`, evenly spread: `from` is divided into
/// that many equal parts, and the middle of each is picked.
template <class T>
std::vector<T> spread_evenly(std::size_t wanted, const std::vector<T>& from) {
  wanted = std::min(wanted, from.size());
  std::vector<T> chosen;
  for (std::size_t i = 0; i < wanted; ++i)
    chosen.push_back(from[(2 * i + 1) * from.size() / (2 * wanted)]);
  return chosen;
}

/// Makes some edges send CAF messages; all others are counters.
std::function<port::form(const graph::wired_edge&)>
some_messages(std::size_t wanted, const graph::wiring_plan& plan) {
  std::vector<const graph::wired_edge*> edges;
  for (auto& e : plan.edges())
    if (e.sent && e.from != no_handle)
      edges.push_back(&e);
  return [chosen = spread_evenly(wanted, edges)](const graph::wired_edge& e) {
    return std::ranges::binary_search(chosen, &e) ? port::form::message
                                                  : port::form::counter;
  };
}

std::function<bool(const graph::op_handle&)>
some_pending(std::size_t wanted, const graph::ssa_graph& g) {
  std::vector<handle_id> ops;
  for (auto& o : g.ops)
    if (o.kind == graph::op_kind::computation)
      ops.push_back(o.id);
  return [chosen = spread_evenly(wanted, ops)](const graph::op_handle& o) {
    return std::ranges::binary_search(chosen, o.id);
  };
}

/// The form of each edge that the options ask for. `plan` must outlive the
/// result.
std::function<port::form(const graph::wired_edge&)>
forms(const executor_options& o, const graph::wiring_plan& plan) {
  switch (o.hooks.form) {
  case edge_form::counter:
    if (o.hooks.message_edges == 0)
      return {};
    return some_messages(o.hooks.message_edges, plan);
  case edge_form::message:
    return [](const graph::wired_edge&) { return port::form::message; };
  case edge_form::mixed: break;
  }
  return [odd = false](const graph::wired_edge&) mutable {
    odd = !odd;
    return odd ? port::form::message : port::form::counter;
  };
}

} // namespace

actor_graph::actor_graph(const parts& p)
  : parts_(p), graph_(*p.graph), helpers_(p.workers->queue(), p.trace, p.busy) {
  for (auto& d : graph_.devices)
    context_.devices.push_back(to_string(d));
  context_.graph = &graph_;
  context_.trace = parts_.trace;
  make_steps();
  make_streams();
  const auto& options = *p.options;
  const graph::wiring_plan plan{graph_, wiring()};
  const auto order = plan.expected_order();
  tasks_ = std::make_unique<graph_tasks>(graph_tasks::parts{
    p.program, p.graph, p.devices, p.parameters, p.kernels,
    context_.steps.size(), &helpers_, p.workers->queue().workers(),
    options.hooks.check_nan, p.where, p.transfers, p.merged_values, order,
    &options.outside_ops});
  if (options.hooks.shuffle)
    disturbs_.emplace(*options.hooks.shuffle);
  make_engine(plan, order);
  tasks_->forget_storages();
}

actor_graph::~actor_graph() {
  // Waits first for late callbacks of device streams, then for workers that are
  // still leaving a stream's drain.
  for (auto* s : streams_)
    s->close();
  parts_.workers->queue().quiesce();
  engine_->disconnect();
  // Others may still hold the actors' addresses, but the objects that the
  // actors use are destroyed.
  retire();
}

void actor_graph::retire() {
  for (auto& a : stream_handles_)
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

void actor_graph::make_steps() {
  steps_without_past_ = graph::steps_without_past(graph_);
  // The number of steps whose values exist at the same time.
  const auto slots =
    std::bit_ceil(parts_.options->steps_in_flight + oldest_input_of(graph_));
  for (std::uint32_t slot = 0; slot < slots; ++slot) {
    auto& step = *context_.steps.emplace_back(std::make_unique<step_state>());
    step.slot = slot;
    step.shards.resize(graph_.devices.size());
    step.fed.resize(graph_.devices.size());
    for (auto& shard : step.shards)
      shard.stop = &step.failed;
  }
}

// -- streams ------------------------------------------------------------------

template <class T>
T& actor_graph::make_stream(const graph::planned_stream& s) {
  auto& on = *parts_.devices[s.device];
  // Collectives have no home: they run where their last value was computed, or
  // on an idle worker.
  const auto home = s.is_serial() && s.kind != graph::stream_kind::collective
                      ? std::size_t{s.device}
                      : stream_actor::no_home;
  const auto& shuffle = parts_.options->hooks.shuffle;
  const auto seed = shuffle ? shuffle->seed : std::nullopt;
  stream_handles_.push_back(
    make<T>(*parts_.system, graph::stream_name(s, graph_),
            on.make_stream({.name = std::string{to_string(s.kind)},
                            .width = s.width,
                            .helpers = &helpers_,
                            .yields = s.kind == graph::stream_kind::gradient}),
            parts_.workers->queue(), home,
            seed ? (*seed + 1) * 31 + streams_.size() : 0));
  auto& made = object_of<T>(stream_handles_.back());
  streams_.push_back(&made);
  return made;
}

void actor_graph::make_streams() {
  planned_ = graph::plan_streams(graph_, parts_.workers->queue().workers(),
                                 parts_.where.here());
  for (auto& s : planned_)
    if (s.kind == graph::stream_kind::collective)
      make_stream<all_reduce_actor>(s).set_order(turns_on(graph_, s.device));
    else
      make_stream<stream_actor>(s);
  std::vector<const stream*> streams;
  for (auto* s : streams_)
    streams.push_back(&s->device_stream());
  graph::set_ticket_groups(planned_, streams);
}

stream_actor& actor_graph::compute_stream() const {
  const auto found = std::ranges::find_if(planned_, [](const auto& s) {
    return s.device == 0 && s.kind == graph::stream_kind::compute;
  });
  return *streams_[static_cast<std::size_t>(found - planned_.begin())];
}

std::vector<stream*> actor_graph::device_streams() const {
  std::vector<stream*> all{&compute_stream().device_stream()};
  for (auto* s : streams_)
    if (&s->device_stream() != all.front())
      all.push_back(&s->device_stream());
  return all;
}

void actor_graph::took(const step_state& step) noexcept {
  if (parts_.workers->queue().workers() == 1)
    return;
  if (step.sharing == op_sharing::no_ops)
    single_worker_steps_.fetch_add(1, std::memory_order_relaxed);
  const auto before = sharing_.now();
  const auto step_ns = step.ended_ns - step.started_ns;
  // Recording takes time too.
  if (const auto level = parts_.trace->level();
      std::exchange(recorded_level_, level) != level)
    sharing_.start_over();
  else if (step.sharing == before) // not begun before the last change
    sharing_.took(step_ns, step_ns < short_op_ns * graph_.ops.size());
  if (const auto now = sharing_.now(); now != before)
    for (auto* s : streams_)
      s->stay_with_worker(now == op_sharing::no_ops);
}

// -- handles ------------------------------------------------------------------

std::vector<op_task*>
actor_graph::make_tasks(const graph::wiring_plan& plan,
                        std::span<const handle_id> order) {
  std::vector<op_task*> tasks(graph_.ops.size());
  for (auto op : order)
    tasks[op] =
      parts_.options->hooks.dry_run
        ? &tasks_->make_empty_task(graph_.op(op),
                                   parts_.options->hooks.dry_run_op)
        : &tasks_->make_task(graph_.op(op),
                             streams_[plan.stream_of(op)]->device_stream());
  return tasks;
}

graph::wiring_options actor_graph::wiring() const {
  graph::wiring_options wiring;
  wiring.streams = planned_;
  wiring.steps_overlap = parts_.options->steps_in_flight > 1;
  wiring.device_is_here = parts_.where.here();
  if (parts_.options->hooks.pending_ops > 0)
    wiring.ends_later = some_pending(parts_.options->hooks.pending_ops, graph_);
  if (const auto& outside = parts_.options->outside_ops; !outside.empty())
    wiring.ends_later = [&outside, others = std::move(wiring.ends_later)](
                          const graph::op_handle& o) {
      return (o.kind == graph::op_kind::computation
              && outside.contains(o.desc->type))
             || (others && others(o));
    };
  return wiring;
}

void actor_graph::make_engine(const graph::wiring_plan& plan,
                              std::span<const handle_id> order) {
  engine::parts p;
  p.context = &context_;
  p.plan = &plan;
  p.streams = streams_;
  p.tasks = make_tasks(plan, order);
  p.order = order;
  p.temporary_of = tasks_->temporary_of_storage();
  p.places = &tasks_->places();
  const auto in_flight = parts_.options->steps_in_flight;
  p.steps_told = in_flight > 1 ? in_flight + graph_.max_distance() : 1;
  p.trace = parts_.trace;
  p.helpers = &helpers_;
  p.busy = parts_.busy;
  p.workers = parts_.workers->queue().workers();
  p.form_of = forms(*parts_.options, plan);
  p.disturbs = disturbs_ ? &*disturbs_ : nullptr;
  engine_.emplace(std::move(p));
  engine_->connect(
    [this](handle_id id) {
      ++message_edges_;
      return address(id);
    },
    stream_handles_.empty() ? nullptr : stream_handles_.front());
  for (handle_id id = 0; id < graph_.size(); ++id)
    if (plan.is_here(id)) {
      ++(graph_.is_op(id) ? op_actors_ : variable_actors_);
      pending_ops_ +=
        graph_.is_op(id) && plan.end_of(id) != graph::op_end::at_return;
    }
}

const graph::ssa_graph& actor_graph::graph() {
  if (graph_.lists_data_edges)
    return graph_;
  std::call_once(completed_,
                 [this] { complete_ = graph::with_data_edges(graph_); });
  return *complete_;
}

wait_finder& actor_graph::waits() {
  std::call_once(explained_, [this] {
    waits_ = std::make_unique<wait_finder>(
      *engine_, context_, graph::wiring_plan{graph(), wiring()},
      tasks().ranks());
  });
  return *waits_;
}

caf::strong_actor_ptr actor_graph::address(handle_id id) {
  if (!engine_->has(id))
    return nullptr;
  std::lock_guard guard{asking_};
  auto& known = addresses_[id];
  if (!known)
    known = make<handle_actor>(
      *parts_.system, context_, id, *engine_,
      [this](handle_id asked) { return to_string(waits().describe(asked)); });
  return known;
}

} // namespace troupe::actors
