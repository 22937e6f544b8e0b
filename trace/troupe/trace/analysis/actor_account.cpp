// SPDX-License-Identifier: Apache-2.0
#include <troupe/trace/analysis/actor_account.hpp>

#include <troupe/base/actor_table.hpp>

#include <algorithm>

namespace troupe::trace {

namespace {

void begin(actor_activity& a, const trace_event& e) {
  // The actor knows how many there are, also those before the trace.
  a.waiting = e.step;
  a.most_waiting = std::max(a.most_waiting, std::uint64_t{e.step} + 1);
  a.last_type = mail_id::of(e.amount).type;
  a.handles_since = e.time;
}

void end(actor_activity& a, const trace_event& e) {
  if (!a.handles_since)
    return;
  const auto ns = e.time - std::min(e.time, *a.handles_since);
  a.handles_since.reset();
  a.busy_ns += ns;
  a.longest_ns = std::max(a.longest_ns, ns);
  if (e.step != static_cast<std::uint32_t>(handling_result::skipped)) {
    ++a.handled;
    return;
  }
  ++a.skipped;
  a.waiting = a.waiting.value_or(0) + 1; // back in the mailbox
}

} // namespace

actor_activity* actor_account::find(actor_number which) {
  if (which >= actor_table::most_actors)
    return nullptr;
  if (which >= all_.size())
    all_.resize(which + std::size_t{1});
  return &all_[which];
}

void actor_account::apply(const trace_event& e) {
  if (!is_of_actor(e.kind))
    return;
  auto* a = find(e.kind == event_kind::mail ? e.to : e.from);
  if (!a)
    return;
  switch (e.kind) {
  case event_kind::mail:
    ++a->received;
    if (a->waiting)
      ++*a->waiting;
    break;
  case event_kind::handling_begin: begin(*a, e); break;
  default: end(*a, e); break;
  }
}

} // namespace troupe::trace
