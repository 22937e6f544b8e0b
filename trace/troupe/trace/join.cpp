// SPDX-License-Identifier: Apache-2.0
#include <troupe/trace/join.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <string>
#include <utility>

namespace troupe::trace {

namespace {

/// How numbers of a process become numbers of the joined trace.
struct shifts {
  std::size_t workers = 0;
  std::size_t actors = 0;
  std::size_t types = 0;

  actor_number actor(actor_number of) const {
    return of == no_actor ? of : of + static_cast<actor_number>(actors);
  }
  trace_event event(trace_event e) const {
    if (e.worker != recorder::no_worker)
      e.worker = static_cast<std::uint16_t>(e.worker + workers);
    if (e.kind == event_kind::core_wait && e.from != no_handle)
      e.from += static_cast<handle_id>(workers);
    if (!is_of_actor(e.kind))
      return e;
    e.from = actor(e.from);
    e.to = actor(e.to);
    auto mail = mail_id::of(e.amount);
    if (e.kind != event_kind::handling_end) {
      mail.type += static_cast<std::uint32_t>(types);
      e.amount = mail.amount();
    }
    return e;
  }
};

/// Keeps the first begin and the last end of each step.
void keep_outer_ends(std::vector<trace_event>& events) {
  std::map<std::uint32_t, std::size_t> begins, ends; // how many there are
  for (const auto& e : events)
    if (e.kind == event_kind::step_end)
      ++ends[e.step];
  std::erase_if(events, [&](const trace_event& e) {
    if (e.kind == event_kind::step_begin)
      return begins[e.step]++ > 0;
    return e.kind == event_kind::step_end && --ends[e.step] > 0;
  });
}

void add(process_trace&& part, const shifts& by, process_trace& to) {
  const auto rank = "rank " + std::to_string(part.run.process) + ": ";
  for (auto& p : part.phases)
    to.phases.push_back({rank + p.name, p.begin_ns, p.end_ns});
  std::ranges::move(part.actors, std::back_inserter(to.actors));
  std::ranges::move(part.message_types, std::back_inserter(to.message_types));
  const auto before = std::ssize(to.events);
  for (const auto& e : part.events)
    to.events.push_back(by.event(e));
  std::inplace_merge(
    to.events.begin(), to.events.begin() + before, to.events.end(),
    [](const auto& a, const auto& b) { return a.time < b.time; });
  part.events = {}; // its memory
  for (auto& s : part.stacks) {
    s.worker += by.workers;
    to.stacks.push_back(std::move(s));
  }
  // A process knows how many messages its own handles get.
  for (std::size_t i = 0; i < to.graph.handles.size(); ++i) {
    auto& messages = to.graph.handles[i].messages;
    messages = std::max(messages, part.graph.handles[i].messages);
  }
  to.lost += part.lost;
  to.is_complete = to.is_complete && part.is_complete;
  to.unread_bytes += part.unread_bytes;
  to.run.workers += part.run.workers;
  to.run.level = std::max(to.run.level, part.run.level);
}

} // namespace

process_trace join(std::vector<process_trace> parts) {
  if (parts.size() == 1)
    return std::move(parts.front());
  process_trace made;
  made.run = parts.front().run;
  made.run.workers = 0;
  made.graph = parts.front().graph;
  made.is_complete = true;
  std::size_t events = 0;
  for (const auto& part : parts)
    events += part.events.size();
  made.events.reserve(events);
  for (auto& part : parts)
    add(std::move(part),
        {made.run.workers, made.actors.size(), made.message_types.size()},
        made);
  keep_outer_ends(made.events);
  return made;
}

} // namespace troupe::trace
