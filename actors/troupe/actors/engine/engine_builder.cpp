// SPDX-License-Identifier: Apache-2.0
#include <troupe/actors/engine/engine_builder.hpp>

#include <troupe/actors/engine/graph_context.hpp>
#include <troupe/actors/engine/storage.hpp>
#include <troupe/actors/engine/stream_actor.hpp>
#include <troupe/actors/tasks/op_task.hpp>
#include <troupe/base/assert.hpp>
#include <troupe/base/error.hpp>

#include <algorithm>
#include <string>
#include <utility>

namespace troupe::actors {

engine_builder::engine_builder(engine& made, engine::parts& p)
  : engine_(made), parts_(p), graph_(*p.context->graph), plan_(*p.plan) {}

void engine_builder::build() {
  add_streams();
  order_mailboxes();
  add_pending_ops();
  fill_ops();
  number_shared_releases();
  find_forms();
  find_sending_streams();
  count_messages();
  find_message_lead();
  list_targets();
  add_end();
  arm();
  engine_.messages_ = plan_.messages_per_step();
  prepare_recording();
}

void engine_builder::add_streams() {
  for (auto* actor : parts_.streams)
    actor->expect(engine_.streams_.emplace_back(engine_, *actor).start);
}

void engine_builder::prepare_recording() {
  engine_.variable_of_.assign(parts_.places->temporaries(), no_handle);
  for (auto& v : graph_.vars)
    if (!v.persistable && plan_.is_here(v.id)
        && (v.feed || v.generator != no_handle)) {
      auto& first = engine_.variable_of_[parts_.temporary_of[v.storage]];
      if (first == no_handle || v.version < graph_.var(first).version)
        first = v.id;
    }
  engine_.ready_on_ =
    std::make_unique<std::uint16_t[]>(engine_.op_handles_.size());
  for (auto id : engine_.op_handles_)
    engine_.results_.add(results_of(graph_.op(id)));
  engine_.device_of_.assign(graph_.ops.size() + graph_.vars.size(), -1);
  for (auto& v : graph_.vars)
    engine_.device_of_[v.id] = v.device;
}

recorded_results::op
engine_builder::results_of(const graph::op_handle& o) const {
  recorded_results::op found;
  found.is_collective = o.collective_index >= 0;
  for (auto output : o.outputs) {
    const auto& v = graph_.var(output);
    if (v.persistable || !engine_.has(output))
      continue;
    const auto temporary = parts_.temporary_of[v.storage];
    const auto is_first = engine_.variable_of_[temporary] == output;
    (is_first ? found.allocated : found.in_place).push_back(temporary);
  }
  if (found.is_collective)
    for (auto input : o.inputs)
      if (const auto& v = graph_.var(input);
          !v.persistable && engine_.has(input))
        found.merged.push_back(parts_.temporary_of[v.storage]);
  return found;
}

// -- mailboxes ----------------------------------------------------------------

// Mailboxes of ops and of variables are in the order of use, stream by stream.
// Ops are in their expected order. Variables that no op writes come first, the
// others follow in the order of their writers. Version 0 of a variable follows
// the version that becomes it.
void engine_builder::order_mailboxes() {
  std::vector<std::vector<handle_id>> ops(plan_.streams().size());
  std::vector<std::vector<handle_id>> variables(ops.size());
  const auto place = [&](handle_id var) {
    variables[plan_.stream_of(var)].push_back(var);
  };
  for (auto& v : graph_.vars)
    if (plan_.is_here(v.id) && plan_.teller_of(v.id).op == no_handle)
      place(v.id);
  for (auto id : parts_.order) {
    ops[plan_.stream_of(id)].push_back(id);
    for (auto& e : plan_.told_by(id)) {
      if (graph_.is_op(e.to))
        continue;
      place(e.to);
      for (auto& next : plan_.told_by(e.to))
        if (!graph_.is_op(next.to))
          place(next.to);
    }
  }
  number_ops(ops);
  number_variables(variables);
}

void engine_builder::number_ops(
  const std::vector<std::vector<handle_id>>& by_stream) {
  auto& handles = engine_.op_handles_;
  for (auto& list : by_stream)
    handles.insert(handles.end(), list.begin(), list.end());
  engine_.ops_ = op_mailboxes{handles.size(), engine_.counter_mask_ + 1};
  engine_.target_of_.assign(graph_.size(), nowhere);
  for (std::size_t i = 0; i < handles.size(); ++i)
    engine_.target_of_[handles[i]] = {target::kind::op,
                                      engine_.ops_.number_of(i)};
}

// After the variables come the ends of the streams' parts of a step, and the
// end of the step.
void engine_builder::number_variables(
  const std::vector<std::vector<handle_id>>& by_stream) {
  std::vector<bool> ends(by_stream.size());
  for (handle_id id = 0; id < graph_.size(); ++id)
    if (plan_.is_here(id) && plan_.ends_step(id))
      ends[plan_.stream_of(id)] = true;
  auto& handles = engine_.variable_handles_;
  handles.reserve(graph_.vars.size() + by_stream.size() + 1);
  for (auto& list : by_stream)
    handles.insert(handles.end(), list.begin(), list.end());
  auto next = handles.size();
  const auto num_ends =
    static_cast<std::size_t>(std::ranges::count(ends, true));
  handles.resize(next + num_ends + (num_ends > 0 ? 1 : 0), no_handle);
  auto& boxes = engine_.variables_;
  boxes = variable_mailboxes{handles.size(), engine_.counter_mask_ + 1};
  const auto target_at = [&](std::size_t i) {
    return target{target::kind::variable, boxes.number_of(i)};
  };
  for (std::size_t i = 0; i < next; ++i)
    engine_.target_of_[handles[i]] = target_at(i);
  end_of_.assign(by_stream.size(), nowhere);
  for (std::size_t s = 0; s < ends.size(); ++s)
    if (ends[s])
      end_of_[s] = target_at(next++);
  if (num_ends == 0)
    return;
  end_ = target_at(next);
  engine_.end_ = &boxes.at(end_.number());
  for (auto i = next - num_ends; i <= next; ++i)
    boxes.at(boxes.number_of(i)).is_end = 1;
}

void engine_builder::fill_ops() {
  for (std::size_t i = 0; i < engine_.op_handles_.size(); ++i) {
    auto& m = engine_.ops_.at(engine_.ops_.number_of(i));
    const auto id = engine_.op_handles_[i];
    m.stream = &engine_.streams_[plan_.stream_of(id)];
    m.task = parts_.tasks[id];
    m.may_be_pending = plan_.end_of(id) != graph::op_end::at_return;
    // The completions of its launches are submitted to the stream too.
    m.stream->actor.expect(m, m.may_be_pending ? 2 + engine_.counter_mask_ : 1);
  }
  for (auto* actor : parts_.streams)
    actor->reserve_room();
}

pending_op* engine_builder::pending(handle_id op) const {
  return engine_.pending_of_.empty() || engine_.pending_of_[op] == none
           ? nullptr
           : &engine_.pending_ops_[engine_.pending_of_[op]];
}

void engine_builder::add_pending_ops() {
  const auto may_be_pending = [this](const graph::op_handle& o) {
    return plan_.is_here(o.id)
           && plan_.end_of(o.id) != graph::op_end::at_return;
  };
  const auto count =
    static_cast<std::size_t>(std::ranges::count_if(graph_.ops, may_be_pending));
  if (count == 0)
    return;
  const auto steps = engine_.counter_mask_ + 1;
  engine_.pending_ops_ = std::vector<pending_op>(count);
  engine_.pending_of_.assign(graph_.ops.size(), none);
  is_fed_.assign(graph_.num_storages, false);
  for (auto& v : graph_.vars)
    if (v.feed)
      is_fed_[v.storage] = true;
  std::uint32_t number = 0;
  for (auto& o : graph_.ops) {
    if (!may_be_pending(o))
      continue;
    auto& p = engine_.pending_ops_[number];
    engine_.pending_of_[o.id] = number++;
    p.box = &engine_.ops_.at(engine_.target_of_[o.id].number());
    p.on = &engine_.streams_[plan_.stream_of(o.id)].actor;
    p.ends_later = plan_.end_of(o.id) == graph::op_end::later;
    p.wants_completion = p.ends_later || plan_.ends_step(o.id);
    p.positions = std::make_unique<ticket[]>(steps);
    p.launches = std::make_unique<pending_launch[]>(steps);
    for (std::uint32_t i = 0; i < steps; ++i) {
      p.launches[i].of = &engine_;
      p.launches[i].of_op = &p;
    }
    p.feeds_of = feeds_used_by(o);
  }
}

std::vector<std::uint32_t>
engine_builder::feeds_used_by(const graph::op_handle& o) const {
  std::vector<std::uint32_t> devices;
  for (auto* variables : {&o.inputs, &o.outputs})
    for (auto id : *variables)
      if (const auto& v = graph_.var(id);
          is_fed_[v.storage] && std::ranges::count(devices, v.device) == 0)
        devices.push_back(v.device);
  return devices;
}

// -- memory -------------------------------------------------------------------

void engine_builder::number_shared_releases() {
  struct storage_users {
    std::uint32_t count = 0;
    std::uint32_t stream = none; ///< the stream of all users, or `several`
    bool is_shared = false;
  };
  std::vector<storage_users> users(graph_.num_storages);
  for (auto& r : plan_.releases()) {
    auto& u = users[r.storage];
    const auto stream = serial_stream_of(plan_.stream_of(r.op));
    u.stream = u.count == 0 || u.stream == stream ? stream : several;
    u.is_shared = ++u.count > 1 || r.distance > 0;
  }
  // In the order of the temporaries, which is their order of use.
  std::vector<std::pair<std::uint32_t, std::uint32_t>> shared_ones;
  for (std::uint32_t storage = 0; storage < users.size(); ++storage)
    if (users[storage].is_shared)
      shared_ones.emplace_back(parts_.temporary_of[storage], storage);
  std::ranges::sort(shared_ones);
  const auto slots = parts_.context->slots();
  auto& all = engine_.shared_releases_;
  all = shared_releases{shared_ones.size(), slots};
  shared_number_.assign(graph_.num_storages, none);
  for (std::size_t i = 0; i < shared_ones.size(); ++i) {
    const auto [temporary, storage] = shared_ones[i];
    const auto& u = users[storage];
    shared_number_[storage] = all.number_of(i);
    auto& shared = all.at(all.number_of(i));
    shared.temporary = temporary;
    shared.users = u.count;
    shared.counts_plainly = u.stream < several;
    for (std::uint32_t slot = 0; slot < slots; ++slot)
      shared_releases::counter(shared, slot)
        .store(u.count, std::memory_order_relaxed);
  }
}

// -- messages -----------------------------------------------------------------

void engine_builder::find_forms() {
  form_.assign(plan_.edges().size(), port::form::counter);
  if (parts_.form_of)
    for (std::size_t i = 0; i < form_.size(); ++i)
      if (auto& e = plan_.edges()[i]; e.sent && e.from != no_handle)
        form_[i] = parts_.form_of(e);
}

// An op sends in its stream's drains. A variable sends on the thread that
// notifies it last; if the message is a call, that is the thread of its only
// sender.
void engine_builder::find_sending_streams() {
  sends_on_.resize(graph_.size());
  for (handle_id id = 0; id < graph_.size(); ++id)
    sends_on_[id] = plan_.is_here(id) ? plan_.stream_of(id) : several;
  // Two rounds, because a variable can notify version 0 of the next step.
  for (int round = 0; round < 2; ++round)
    for (std::size_t i = 0; i < form_.size(); ++i)
      if (auto& e = plan_.edges()[i];
          e.sent && e.from != no_handle && !graph_.is_op(e.to)
          && (form_[i] != port::form::counter || sends_on_[e.from] == several))
        sends_on_[e.to] = several;
}

target engine_builder::add_port(const graph::wired_edge& e) {
  auto& p = engine_.ports_.emplace_back();
  p.from = e.from;
  p.to = e.to;
  p.receiver = engine_.target_of_[e.to];
  p.kind = form_[static_cast<std::size_t>(&e - plan_.edges().data())];
  return {target::kind::port,
          static_cast<std::uint32_t>(engine_.ports_.size() - 1)};
}

// Determines the senders of each mailbox before the lists are built. A mailbox
// with only one serial stream as sender counts without atomic read-modify-write
// operations.
void engine_builder::count_messages() {
  ops_told_on_.assign(engine_.op_handles_.size(), none);
  variables_told_on_.assign(engine_.variable_handles_.size(), none);
  target_.assign(plan_.edges().size(), nowhere);
  for (std::size_t i = 0; i < plan_.edges().size(); ++i) {
    const auto& e = plan_.edges()[i];
    if (!e.sent)
      continue;
    const auto by_call = form_[i] == port::form::counter;
    target_[i] = by_call ? engine_.target_of_[e.to] : add_port(e);
    const std::uint32_t distance = distance_of(e);
    engine_.largest_distance_ = std::max(engine_.largest_distance_, distance);
    const auto starts = e.from == no_handle;
    const auto sender = starts ? plan_.stream_of(e.to) : sends_on_[e.from];
    count_sender(engine_.target_of_[e.to], by_call ? sender : several);
    if (starts)
      engine_.streams_[sender].starts.push_back(target_[i]);
    else if (distance > 0)
      engine_.streams_[plan_.stream_of(e.from)].first_starts.emplace_back(
        target_[i], distance);
  }
}

// A variable's message on completion is sent by the op that writes the
// variable. The distance then counts from that op's step.
std::uint32_t engine_builder::distance_of(const graph::wired_edge& e) const {
  return e.distance + (e.at_completion ? plan_.teller_of(e.from).distance : 0);
}

std::uint32_t engine_builder::serial_stream_of(std::uint32_t stream) const {
  const auto is_alone = stream != several && parts_.disturbs == nullptr
                        && plan_.streams()[stream].is_serial();
  return is_alone ? stream : several;
}

void engine_builder::count_sender(target to, std::uint32_t sender) {
  const auto stream = serial_stream_of(sender);
  const auto count = [&](auto& m, std::uint32_t& told_on) {
    if (m.expected + 1u >= mailbox_count::messages_mask)
      throw error{errc::graph_invalid,
                  "a handle waits for more than "
                    + std::to_string(mailbox_count::messages_mask - 1)
                    + " messages"};
    m.expected = (m.expected + 1) & mailbox_count::messages_mask;
    told_on = told_on == none || told_on == stream ? stream : several;
  };
  if (to.what() == target::kind::op)
    count(engine_.ops_.at(to.number()),
          ops_told_on_[engine_.ops_.index_of(to.number())]);
  else
    count(engine_.variables_.at(to.number()),
          variables_told_on_[engine_.variables_.index_of(to.number())]);
}

// Messages from steps before and from other streams come at no known position.
void engine_builder::find_message_lead() {
  // As many lines as a first-level cache has.
  constexpr std::uint32_t most = 512;
  const auto position = [this](handle_id op) {
    return engine_.ops_.index_of(engine_.target_of_[op].number());
  };
  for (auto& e : plan_.edges()) {
    const auto sender = e.from == no_handle ? graph::wiring_plan::teller{}
                                            : plan_.teller_of(e.from);
    if (!e.sent || e.distance > 0 || sender.op == no_handle
        || sender.distance > 0 || !graph_.is_op(e.to)
        || plan_.stream_of(sender.op) != plan_.stream_of(e.to))
      continue;
    const auto from = position(sender.op), to = position(e.to);
    if (to > from)
      engine_.message_lead_ =
        std::min(most, std::max(engine_.message_lead_,
                                static_cast<std::uint32_t>(to - from)));
  }
}

// The step's end waits for the ends of the streams' parts and for the end of
// the previous step. Steps therefore always end in order.
void engine_builder::add_end() {
  if (!engine_.end_)
    return;
  for (auto end : end_of_)
    if (end != nowhere)
      count_sender(end_, several);
  engine_.end_waits_for_end_before_ = plan_.steps_overlap();
  if (engine_.end_waits_for_end_before_)
    count_sender(end_, several);
}

void engine_builder::arm() {
  const auto steps = engine_.counter_mask_ + 1;
  const auto arm_all = [&](auto& boxes, const auto& told_on) {
    for (std::size_t i = 0; i < told_on.size(); ++i) {
      auto& m = boxes.at(boxes.number_of(i));
      m.counts_plainly = told_on[i] < several;
      for (step_id step = 0; step < steps; ++step)
        boxes.counter(m, engine_.which_counter(step))
          .store(m.expected
                   | std::uint32_t{engine_.round_of(step)}
                       << mailbox_count::round_shift,
                 std::memory_order_relaxed);
    }
  };
  arm_all(engine_.ops_, ops_told_on_);
  arm_all(engine_.variables_, variables_told_on_);
  if (engine_.end_waits_for_end_before_) // no step precedes the first
    engine_.counter_of(end_, 0).fetch_sub(1, std::memory_order_relaxed);
}

// -- lists --------------------------------------------------------------------

void engine_builder::list_targets() {
  for (auto& e : plan_.edges())
    if (e.sent && e.from != no_handle)
      add_ticket(e);
  for (std::size_t i = 0; i < engine_.op_handles_.size(); ++i) {
    collect_targets(engine_.op_handles_[i]);
    list_op(engine_.ops_.at(engine_.ops_.number_of(i)), engine_.op_handles_[i]);
  }
  for (std::size_t i = 0; i < engine_.variable_handles_.size(); ++i)
    if (const auto id = engine_.variable_handles_[i]; id != no_handle) {
      collect_targets(id);
      list_variable(engine_.variables_.at(engine_.variables_.number_of(i)));
    }
  engine_.lists_.shrink_to_fit();
}

void engine_builder::collect_targets(handle_id id) {
  now_.clear();
  later_.clear();
  const auto told = plan_.told_by(id);
  const auto first =
    static_cast<std::size_t>(told.data() - plan_.edges().data());
  const auto teller = plan_.teller_of(id);
  auto* on_completion = teller.op == no_handle ? nullptr : pending(teller.op);
  for (std::size_t i = 0; i < told.size(); ++i) {
    const auto& e = told[i];
    if (!e.sent)
      continue;
    const auto to = target_[first + i];
    if (e.at_completion) {
      on_completion->wants_completion = true;
      on_completion->on_completion.push_back({to, distance_of(e), id});
    } else if (e.distance == 0) {
      now_.push_back(to.word());
    } else {
      later_.insert(later_.end(), {to.word(), std::uint32_t{e.distance}});
    }
  }
  if (!plan_.ends_step(id))
    return;
  const auto end = end_of_[plan_.stream_of(id)];
  if (auto* own = graph_.is_op(id) ? pending(id) : nullptr)
    own->on_completion.push_back({end, 0, id});
  else
    now_.push_back(end.word());
  count_sender(end, sends_on_[id]);
}

void engine_builder::list_op(op_mailbox& m, handle_id op) {
  own_.clear();
  shared_.clear();
  delayed_.clear();
  auto* const p = pending(op);
  for (auto& r : plan_.releases_of(op))
    if (const auto number = shared_number_[r.storage]; number == none)
      own_.push_back(parts_.temporary_of[r.storage]);
    else if (r.distance == 0 && !p)
      shared_.push_back(number);
    else
      delayed_.insert(delayed_.end(), {number, r.distance});
  if (p) {
    p->gives_back_on_completion = std::exchange(delayed_, {});
    p->wants_completion |= !p->gives_back_on_completion.empty();
  }
  m.lists = static_cast<std::uint32_t>(engine_.lists_.size());
  op_lists{own_, shared_, now_, delayed_, later_}.append_to(engine_.lists_);
}

void engine_builder::list_variable(variable_mailbox& m) {
  if (now_.size() <= variable_mailbox::most_told_here && later_.empty()) {
    m.told_here = static_cast<std::uint32_t>(now_.size()) & 63u;
    std::ranges::copy(now_, m.told.begin());
    return;
  }
  auto& lists = engine_.lists_;
  m.told_here = variable_mailbox::in_lists;
  m.lists = static_cast<std::uint32_t>(lists.size());
  lists.insert(lists.end(), {static_cast<std::uint32_t>(now_.size()),
                             static_cast<std::uint32_t>(later_.size() / 2)});
  for (auto* part : {&now_, &later_})
    lists.insert(lists.end(), part->begin(), part->end());
}

// A launch waits for the tickets of those launches on other streams from which
// it gets messages.
void engine_builder::add_ticket(const graph::wired_edge& e) {
  if (e.at_completion || !graph_.is_op(e.to))
    return;
  const auto maker = plan_.teller_of(e.from);
  if (maker.op == no_handle
      || plan_.end_of(maker.op) != graph::op_end::by_ticket
      || plan_.stream_of(maker.op) == plan_.stream_of(e.to))
    return;
  auto& waits = pending(e.to)->waits_for;
  const pending_op::awaited wanted{pending(maker.op),
                                   e.distance + maker.distance};
  wanted.producer->gives_position = true;
  if (std::ranges::find(waits, wanted) == waits.end())
    waits.push_back(wanted);
}

} // namespace troupe::actors
