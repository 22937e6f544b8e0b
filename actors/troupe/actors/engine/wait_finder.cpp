// SPDX-License-Identifier: Apache-2.0
#include <troupe/actors/engine/wait_finder.hpp>

#include <troupe/actors/engine/graph_context.hpp>
#include <troupe/actors/tasks/collective_ranks.hpp>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <thread>
#include <utility>

namespace troupe::actors {

namespace {

/// Rank of a handle by its progress. Of several handles that something waits
/// for, the one with the most progress is reported.
int rank(progress how_far) {
  switch (how_far) {
  case progress::no_step:
  case progress::is_done: return 0;
  case progress::waits: return 1;
  case progress::is_ready: return 2;
  case progress::launched: return 3;
  case progress::runs: break;
  }
  return 4;
}

/// Number of looks before a message is reported as missing: a handle counts as
/// done a moment before all its messages are sent.
constexpr int looks_before_missing = 4;
constexpr std::chrono::microseconds between_looks{200};
/// Number of chains that are followed at most, because handles go on meanwhile.
constexpr int most_chains = 64;
/// Number of calls of a device that are looked at.
constexpr std::size_t most_calls = 256;

} // namespace

wait_finder::wait_finder(const engine& runs, const graph_context& context,
                         graph::wiring_plan plan, const collective_ranks* ranks)
  : engine_(runs), context_(context), ranks_(ranks), plan_(std::move(plan)),
    first_in_edge_(context.graph->size() + 1) {
  const auto& edges = plan_.edges();
  const auto counts = [&](const graph::wired_edge& e) {
    return e.sent && plan_.is_here(e.to);
  };
  for (auto& e : edges)
    if (counts(e))
      ++first_in_edge_[e.to + 1];
  for (std::size_t i = 1; i < first_in_edge_.size(); ++i)
    first_in_edge_[i] += first_in_edge_[i - 1];
  in_edges_.resize(first_in_edge_.back());
  auto next = first_in_edge_;
  for (std::uint32_t i = 0; i < edges.size(); ++i)
    if (counts(edges[i]))
      in_edges_[next[edges[i].to]++] = i;
}

// -- steps --------------------------------------------------------------------

std::vector<const step_state*> wait_finder::steps_under_way() const {
  std::vector<const step_state*> steps;
  for (auto& s : context_.steps)
    if (s->under_way.load(std::memory_order_relaxed)
        && !s->is_launched.load(std::memory_order_relaxed))
      steps.push_back(s.get());
  std::ranges::sort(steps, {}, [](const step_state* s) {
    return s->id.load(std::memory_order_relaxed);
  });
  return steps;
}

const step_state* wait_finder::under_way(step_id id) const {
  const auto& step = context_.state_of(id);
  return step.under_way.load(std::memory_order_relaxed)
             && step.id.load(std::memory_order_relaxed) == id
           ? &step
           : nullptr;
}

std::optional<wait_finder::place>
wait_finder::oldest_unfinished(handle_id id) const {
  for (auto* step : steps_under_way())
    if (engine_.state_of(id, *step).how_far != progress::is_done)
      return place{id, step};
  return std::nullopt;
}

// -- questions ----------------------------------------------------------------

wait_chain wait_finder::why(handle_id id) const {
  auto chain = follow_from([&] { return oldest_unfinished(id); });
  if (chain.links.empty())
    chain.links.push_back(describe(id));
  return chain;
}

/// The oldest running step, if it is launched as a whole.
wait_chain wait_finder::launched_step() const {
  wait_chain chain;
  for (auto& s : context_.steps)
    if (const auto id = s->id.load(std::memory_order_relaxed);
        s->under_way.load(std::memory_order_relaxed)
        && s->is_launched.load(std::memory_order_relaxed)
        && (chain.links.empty() || id < chain.links.front().step))
      chain.links = {{.name = "captured step@" + context_.devices.front(),
                      .step = id,
                      .how_far = progress::launched,
                      .stream = "compute"}};
  return chain;
}

wait_chain wait_finder::why() const {
  // Such steps run at no time at which others do.
  if (auto chain = launched_step(); !chain.links.empty())
    return chain;
  return follow_from([this] { return last_to_end(); });
}

// A handle that was running can be done when it is described. The chain would
// then explain nothing, so another one is followed.
template <class Find>
wait_chain wait_finder::follow_from(Find find) const {
  for (int look = 0; look < most_chains; ++look) {
    const auto at = find();
    if (!at)
      break;
    auto chain = follow(*at);
    if (chain.links.back().how_far != progress::is_done)
      return chain;
  }
  return {};
}

std::optional<wait_finder::place> wait_finder::last_to_end() const {
  const auto steps = steps_under_way();
  if (steps.empty())
    return std::nullopt;
  std::optional<place> last;
  auto farthest = progress::is_done;
  for (handle_id id = 0; id < context_.graph->size(); ++id) {
    if (!plan_.is_here(id) || !plan_.ends_step(id))
      continue;
    const auto how_far = engine_.state_of(id, *steps.front()).how_far;
    if (rank(how_far) > rank(farthest)) {
      farthest = how_far;
      last = place{id, steps.front()};
    }
  }
  return last;
}

wait_chain::link wait_finder::describe(handle_id id) const {
  if (auto at = oldest_unfinished(id))
    return link_of(*at);
  const auto steps = steps_under_way();
  const auto last = steps.empty()
                      ? context_.last_step.load(std::memory_order_relaxed)
                      : steps.back()->id.load(std::memory_order_relaxed);
  wait_chain::link link;
  link.handle = id;
  link.name = graph::handle_name(*context_.graph, id);
  if (last == graph_context::none) {
    link.how_far = progress::no_step;
  } else {
    link.how_far = progress::is_done;
    link.step = last;
  }
  return link;
}

std::optional<wait_chain::link> wait_finder::running() const {
  for (std::size_t w = 0; w < engine_.workers(); ++w)
    if (const auto runs = engine_.runs_on(w); runs.op != no_handle && runs.step)
      return link_of({runs.op, runs.step});
  return std::nullopt;
}

// -- the chain ----------------------------------------------------------------

wait_chain wait_finder::follow(place at) const {
  wait_chain chain;
  int looks = 0;
  while (chain.links.size() <= context_.graph->size()) {
    auto link = link_of(at);
    if (link.how_far == progress::waits) {
      auto next = sender_to_wait_for(at);
      if (!next && ++looks < looks_before_missing) {
        std::this_thread::sleep_for(between_looks);
        continue;
      }
      looks = 0;
      if (!next && awaits_start(at)) {
        link.how_far = progress::is_ready;
        chain.links.push_back(std::move(link));
        chain.busy = busy_workers();
        break;
      }
      chain.links.push_back(std::move(link));
      if (!next) {
        chain.missing = missing_message(at);
        break;
      }
      at = *next;
    } else {
      std::optional<place> next;
      if (link.how_far == progress::is_ready)
        next = runs_on_stream_of(at);
      else if (link.how_far == progress::launched)
        next = op_that_launch_waits_for(at);
      if (!next && link.how_far == progress::launched) {
        chain.call = awaited_ranks(at);
        chain.paused = paused_ranks(at, chain.call);
      }
      if (!next && link.how_far == progress::is_ready)
        chain.busy = busy_workers();
      chain.links.push_back(std::move(link));
      if (!next)
        break;
      at = *next;
    }
  }
  return chain;
}

wait_chain::link wait_finder::link_of(place p) const {
  const auto state = engine_.state_of(p.handle, *p.step);
  wait_chain::link l;
  l.handle = p.handle;
  l.name = graph::handle_name(*context_.graph, p.handle);
  l.step = p.step->id.load(std::memory_order_relaxed);
  l.how_far = state.how_far;
  l.messages = state.messages;
  l.of_messages = state.of_messages;
  l.worker = state.worker;
  l.stream = graph::stream_name(plan_.streams()[plan_.stream_of(p.handle)],
                                *context_.graph);
  return l;
}

std::optional<wait_finder::place>
wait_finder::sender_to_wait_for(place p) const {
  const auto step = p.step->id.load(std::memory_order_relaxed);
  std::optional<place> found;
  auto farthest = progress::is_done;
  const auto consider = [&](handle_id from, std::uint32_t distance) {
    if (step < distance || !engine_.has(from))
      return;
    const auto* in = under_way(step - distance);
    if (!in)
      return;
    const auto how_far = engine_.state_of(from, *in).how_far;
    if (rank(how_far) > rank(farthest)) {
      farthest = how_far;
      found = place{from, in};
    }
  };
  for (auto i = first_in_edge_[p.handle]; i < first_in_edge_[p.handle + 1];
       ++i) {
    const auto& e = plan_.edges()[in_edges_[i]];
    if (e.from == no_handle)
      continue;
    consider(e.from, e.distance);
    if (!e.at_completion)
      continue;
    if (const auto maker = plan_.teller_of(e.from); maker.op != no_handle)
      consider(maker.op, e.distance + maker.distance);
  }
  return found;
}

std::optional<wait_finder::place>
wait_finder::runs_on_stream_of(place p) const {
  for (std::size_t w = 0; w < engine_.workers(); ++w)
    if (const auto runs = engine_.runs_on(w);
        runs.op != no_handle && runs.op != p.handle && runs.step
        && plan_.stream_of(runs.op) == plan_.stream_of(p.handle))
      return place{runs.op, runs.step};
  return launched_on_stream_of(p);
}

/// A launch that its stream has not completed, of the oldest step that has one.
std::optional<wait_finder::place>
wait_finder::launched_on_stream_of(place p) const {
  const auto stream = plan_.stream_of(p.handle);
  for (const auto* step : steps_under_way())
    for (const auto& op : context_.graph->ops)
      if (op.id != p.handle && engine_.has(op.id)
          && plan_.stream_of(op.id) == stream
          && engine_.state_of(op.id, *step).how_far == progress::launched)
        return place{op.id, step};
  return std::nullopt;
}

// A `recv` waits for its `send`. A rank waits for all other ranks of its
// collective; those that have been launched have already arrived.
std::optional<wait_finder::place>
wait_finder::op_that_launch_waits_for(place p) const {
  const auto& g = *context_.graph;
  if (!g.is_op(p.handle))
    return std::nullopt;
  const auto& op = g.op(p.handle);
  const auto is_behind = [&](handle_id other) {
    const auto how_far = engine_.has(other)
                           ? engine_.state_of(other, *p.step).how_far
                           : progress::is_done;
    return how_far != progress::is_done && how_far != progress::launched;
  };
  if (op.kind == graph::op_kind::recv) {
    const auto found =
      std::ranges::lower_bound(g.transfers, op.id, {}, &graph::transfer::recv);
    if (is_behind(found->send))
      return place{found->send, p.step};
  }
  if (g.rank_collectives && op.collective_index >= 0)
    for (auto& other : g.ops)
      if (other.collective_index == op.collective_index && is_behind(other.id))
        return place{other.id, p.step};
  return std::nullopt;
}

/// What a launched op waits for that other processes do.
std::optional<comm::waiting_call> wait_finder::awaited_ranks(place p) const {
  const auto& g = *context_.graph;
  if (!g.is_op(p.handle))
    return std::nullopt;
  const auto& op = g.op(p.handle);
  if (op.kind == graph::op_kind::recv) {
    const auto found =
      std::ranges::lower_bound(g.transfers, op.id, {}, &graph::transfer::recv);
    if (engine_.has(found->send))
      return std::nullopt;
    return comm::waiting_call{.text = graph::handle_name(g, op.id),
                              .arrived = {},
                              .missing = {g.op(found->send).device}};
  }
  if (!ranks_ || !g.rank_collectives || op.collective_index < 0)
    return std::nullopt;
  return ranks_->of(op.device).waits_for();
}

/// Those of the missing ranks that say that they are paused.
std::vector<std::size_t>
wait_finder::paused_ranks(place p,
                          const std::optional<comm::waiting_call>& call) const {
  const auto device = context_.graph->op(p.handle).device;
  if (!call || call->missing.empty() || !ranks_ || !ranks_->has(device))
    return {};
  std::vector<std::size_t> paused;
  for (auto& peer : ranks_->of(device).peers())
    if (peer.is_paused())
      std::ranges::copy_if(peer.ranks, std::back_inserter(paused),
                           [&](std::size_t rank) {
                             return std::ranges::count(call->missing, rank) > 0;
                           });
  std::ranges::sort(paused);
  return paused;
}

std::vector<collective_wait> wait_finder::collectives() const {
  std::vector<collective_wait> all;
  const auto& g = *context_.graph;
  if (!ranks_ || !g.rank_collectives)
    return all;
  for (std::size_t device = 0; device < g.devices.size(); ++device) {
    if (!ranks_->has(device))
      continue;
    for (auto& call : ranks_->of(device).waiting_calls(most_calls))
      if (const auto made =
            ranks_->in_step(call.position)) // else between steps
        all.push_back(
          {collective_on(device, *made), made->step, std::move(call)});
  }
  return all;
}

/// Each step makes the calls of a device in the order of the collectives.
handle_id wait_finder::collective_on(std::size_t device,
                                     const step_call& call) const {
  std::vector<const graph::op_handle*> made;
  for (auto& op : context_.graph->ops)
    if (op.collective_index >= 0 && op.device == device
        && (call.updates || !op.only_in_updates))
      made.push_back(&op);
  std::ranges::sort(made, {}, &graph::op_handle::collective_index);
  return call.index < made.size() ? made[call.index]->id : no_handle;
}

std::vector<wait_chain::busy_worker> wait_finder::busy_workers() const {
  std::vector<wait_chain::busy_worker> all;
  for (std::size_t w = 0; w < engine_.workers(); ++w)
    if (const auto runs = engine_.runs_on(w); runs.op != no_handle)
      all.push_back({w, graph::handle_name(*context_.graph, runs.op)});
  return all;
}

/// True if a message of the step's start is missing because no worker has come
/// to the stream that sends it.
bool wait_finder::awaits_start(place p) const {
  const auto begin = first_in_edge_[p.handle];
  const auto end = first_in_edge_[p.handle + 1];
  return std::any_of(
           in_edges_.begin() + begin, in_edges_.begin() + end,
           [&](std::uint32_t i) { return plan_.edges()[i].from == no_handle; })
         && engine_.has_due_start(plan_.stream_of(p.handle));
}

std::string wait_finder::missing_message(place p) const {
  const auto step = p.step->id.load(std::memory_order_relaxed);
  const auto name_of = [&](handle_id from, std::uint32_t distance) {
    return from == no_handle ? "the start of step " + std::to_string(step)
                             : graph::handle_name(*context_.graph, from)
                                 + ", step " + std::to_string(step - distance);
  };
  std::string names;
  for (auto i = first_in_edge_[p.handle]; i < first_in_edge_[p.handle + 1];
       ++i) {
    const auto& e = plan_.edges()[in_edges_[i]];
    names += (names.empty() ? "" : " or ") + name_of(e.from, e.distance);
  }
  return names;
}

} // namespace troupe::actors
