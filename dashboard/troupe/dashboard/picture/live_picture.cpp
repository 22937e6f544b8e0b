// SPDX-License-Identifier: Apache-2.0
#include <troupe/dashboard/picture/live_picture.hpp>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <utility>

namespace troupe::dashboard {

namespace {

/// Of how many steps in flight the times are kept.
constexpr std::size_t most_open_steps = 65'536;

/// By device: whether it is in one of the processes. Handles of a damaged file
/// can name devices that it lacks.
std::vector<bool> devices_of(const trace::graph_info& graph,
                             const std::vector<std::size_t>& processes) {
  auto count = graph.devices.size();
  for (const auto& h : graph.handles)
    count = std::max(count, h.device + std::size_t{1});
  std::vector<bool> here(count, true);
  for (std::size_t d = 0; d < std::min(count, graph.process_of_device.size());
       ++d)
    here[d] = std::ranges::find(processes, graph.process_of_device[d])
              != processes.end();
  return here;
}

} // namespace

bool step_record::has_nan() const noexcept {
  return loss && !std::isfinite(*loss);
}

live_picture::live_picture(trace::graph_info graph,
                           const std::vector<std::size_t>& processes,
                           std::size_t workers)
  : graph_(std::move(graph)), workers_(workers),
    here_(devices_of(graph_, processes)), needs_(graph_.handles.size()),
    first_edge_(graph_.handles.size() + 1), edges_from_(graph_.edges.size()),
    states_(graph_.handles.size()), arrived_(graph_.handles.size()),
    runs_(graph_.handles.size()), edge_messages_(graph_.edges.size()),
    step_of_(graph_.handles.size()), early_(graph_.handles.size()),
    slices_(kept_slices, graph_.handles.size()), collectives_(graph_),
    memory_(graph_), peaks_(graph_.devices.size()) {
  for (handle_id id = 0; id < states_.size(); ++id)
    states_[id] = has(id) ? handle_state::waits : handle_state::elsewhere;
  for (const auto& e : graph_.edges) {
    ++needs_[e.to];
    ++first_edge_[e.from + std::size_t{1}];
  }
  for (handle_id id = 0; id < needs_.size(); ++id)
    if (const auto known = graph_.handles[id].messages; known > 0)
      needs_[id] = known;
    else
      needs_[id] = std::max(needs_[id], 1u); // the begin of the step
  std::partial_sum(first_edge_.begin(), first_edge_.end(), first_edge_.begin());
  // By sender, then by receiver, so that an edge is found in a few looks.
  std::iota(edges_from_.begin(), edges_from_.end(), 0u);
  std::ranges::sort(edges_from_, {}, [this](std::uint32_t i) {
    return std::pair{graph_.edges[i].from, graph_.edges[i].to};
  });
}

std::uint64_t live_picture::messages_per_step() const noexcept {
  std::uint64_t sum = 0;
  for (handle_id id = 0; id < needs_.size(); ++id)
    if (has(id))
      sum += needs_[id];
  return sum;
}

void live_picture::add(std::span<const trace_event> events) {
  for (const auto& e : events)
    add(e);
}

void live_picture::add(const actor_table::changes& found) {
  for (const auto& [number, actor] : found.actors) {
    actors_.resize(std::max(actors_.size(), number + std::size_t{1}));
    actors_[number] = actor;
  }
  for (const auto& [number, name] : found.types) {
    message_types_.resize(
      std::max(message_types_.size(), number + std::size_t{1}));
    message_types_[number] = name;
  }
}

void live_picture::add(const trace_event& e) {
  last_ns_ = std::max(last_ns_, e.time);
  if (is_of_actor(e.kind))
    return activity_.apply(e);
  switch (e.kind) {
  case event_kind::message: collectives_.add(e); return add_message(e);
  case event_kind::run_begin: begin_run(e); break;
  case event_kind::run_end: end_run(e); break;
  case event_kind::step_begin: return begin_step(e);
  case event_kind::step_end: memory_.apply(e); return end_step(e);
  case event_kind::failure:
    failure_ = e.from < graph_.handles.size() ? graph_.handles[e.from].name
                                              : "unknown op";
    return;
  default: break;
  }
  slices_.add(e);
  collectives_.add(e);
  if (const auto change = memory_.apply(e))
    peaks_[change->device] =
      std::max(peaks_[change->device], memory_.bytes(change->device));
}

// Steps overlap: a handle shows the newest step that has reached it.
bool live_picture::is_current(const trace_event& e) const {
  return e.from < states_.size() && step_of_[e.from] == e.step + 1;
}

void live_picture::reach(handle_id id, std::uint32_t step) {
  step_of_[id] = step + 1;
  arrived_[id] = early_[id].step == step ? early_[id].messages : 0;
  states_[id] = handle_state::waits;
}

void live_picture::become_ready(handle_id id) {
  if (graph_.handles[id].is_op) {
    states_[id] = handle_state::is_ready;
    return;
  }
  states_[id] = handle_state::is_done;
  ++runs_[id];
}

void live_picture::add_message(const trace_event& e) {
  ++messages_;
  has_messages_ = true;
  if (const auto edge = edge_between(e.from, e.to))
    ++edge_messages_[*edge];
  if (e.to >= states_.size() || e.step + 1 < step_of_[e.to])
    return;
  // A step sends messages to steps after it, which may not have begun.
  if (!newest_ || e.step > *newest_) {
    auto& early = early_[e.to];
    if (early.step != e.step)
      early = {e.step, 0};
    ++early.messages;
    return;
  }
  if (e.step + 1 > step_of_[e.to])
    reach(e.to, e.step);
  if (++arrived_[e.to] == needs_[e.to])
    become_ready(e.to);
}

void live_picture::begin_run(const trace_event& e) {
  has_ops_ = true;
  if (e.from < states_.size())
    run_in(e.from, e.step);
}

void live_picture::run_in(handle_id op, std::uint32_t step) {
  if (step + 1 < step_of_[op])
    return;
  if (step + 1 > step_of_[op])
    reach(op, step);
  states_[op] = handle_state::runs;
}

void live_picture::take_delayed(handle_id op, std::uint32_t step) {
  // Its run can be in events that were taken later than its delay was seen.
  if (step_of_[op] != step + 1 || states_[op] != handle_state::is_done)
    run_in(op, step);
}

void live_picture::end_run(const trace_event& e) {
  if (e.from >= states_.size())
    return;
  ++runs_[e.from];
  if (is_current(e))
    states_[e.from] = handle_state::is_done;
  if (has_messages_)
    return;
  for (auto i = first_edge_[e.from]; i < first_edge_[e.from + std::size_t{1}];
       ++i) {
    const auto to = graph_.edges[edges_from_[i]].to;
    if (!graph_.handles[to].is_op && step_of_[to] <= e.step) {
      reach(to, e.step);
      become_ready(to);
    }
  }
}

void live_picture::begin_step(const trace_event& e) {
  newest_ = std::max(newest_.value_or(0), e.step);
  if (open_.size() < most_open_steps)
    open_.push_back({e.step, e.time});
}

// As in an analysis of a trace, a step's time begins with the end of the step
// before, if that is later than its own begin.
void live_picture::end_step(const trace_event& e) {
  const auto found = std::ranges::find(open_, e.step, &open_step::step);
  if (found == open_.end())
    return;
  const auto begin = found->begin;
  open_.erase(found);
  for (auto& other : open_)
    other.begin = std::max(other.begin, e.time);
  ++steps_ended_;
  const auto ns = static_cast<double>(e.time - std::min(e.time, begin));
  record_of(e.step).ms = ns / 1e6;
  step_seconds_ += ns / 1e9;
}

void live_picture::add(const step_record& known) {
  auto& record = record_of(known.step);
  const auto ms = record.ms ? record.ms : known.ms;
  if (known.has_nan() && !record.has_nan()) {
    ++nan_steps_;
    first_nan_ = std::min(first_nan_.value_or(known.step), known.step);
  }
  record = known;
  record.ms = ms;
  measure_speeds(known.step);
}

/// Of the step, and of later ones that it belongs to.
void live_picture::measure_speeds(std::uint32_t from_step) {
  const auto first = static_cast<std::size_t>(
    std::ranges::lower_bound(steps_, from_step, {}, &step_record::step)
    - steps_.begin());
  for (auto at = first; at < std::min(steps_.size(), first + steps_of_speed);
       ++at)
    steps_[at].samples_per_s = mean_speed(at);
}

/// Samples by time: the steps are of the same size.
std::optional<double> live_picture::mean_speed(std::size_t at) const {
  if (!steps_[at].own_samples_per_s)
    return {};
  double time = 0;
  double steps = 0;
  for (auto i = at + 1 - std::min(at + 1, steps_of_speed); i <= at; ++i)
    if (const auto& own = steps_[i].own_samples_per_s) {
      time += *own > 0 ? 1 / *own : 0;
      ++steps;
    }
  return time > 0 ? std::optional{steps / time} : std::nullopt;
}

step_record& live_picture::record_of(std::uint32_t step) {
  const auto place =
    std::ranges::lower_bound(steps_, step, std::less<>{}, &step_record::step);
  if (place != steps_.end() && place->step == step)
    return *place;
  ++steps_seen_;
  if (steps_.size() == kept_steps)
    steps_.pop_front();
  return *steps_.insert(
    std::ranges::lower_bound(steps_, step, std::less<>{}, &step_record::step),
    {.step = step});
}

std::optional<std::size_t> live_picture::edge_between(handle_id from,
                                                      handle_id to) const {
  if (from >= states_.size())
    return {};
  const auto first = edges_from_.begin() + first_edge_[from];
  const auto last = edges_from_.begin() + first_edge_[from + std::size_t{1}];
  const auto found = std::ranges::lower_bound(
    first, last, to, std::less<>{},
    [this](std::uint32_t i) { return graph_.edges[i].to; });
  if (found == last || graph_.edges[*found].to != to)
    return {};
  return *found;
}

} // namespace troupe::dashboard
