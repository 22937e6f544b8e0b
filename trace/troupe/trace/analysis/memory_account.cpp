// SPDX-License-Identifier: Apache-2.0
#include <troupe/trace/analysis/memory_account.hpp>

#include <algorithm>

namespace troupe::trace {

namespace {

/// The handle whose memory grows or shrinks; no_handle: none.
handle_id allocated_by(const trace_event& e) {
  switch (e.kind) {
  case event_kind::allocation:
  case event_kind::deallocation: return e.to;
  case event_kind::feed: return e.from;
  default: return no_handle;
  }
}

} // namespace

memory_account::memory_account(const graph_info& graph)
  : graph_(graph), held_(graph.handles.size()), is_freed_(held_.size()),
    of_device_(graph.devices.size()) {}

memory_account::memory_account(const process_trace& part)
  : memory_account(part.graph) {
  expect(part.events);
}

void memory_account::expect(std::span<const trace_event> events) {
  for (const auto& e : events)
    if (e.kind == event_kind::deallocation && e.to < is_freed_.size())
      is_freed_[e.to] = true;
}

/// An op is recorded before the end of its step.
void memory_account::note_level(const trace_event& e) {
  if (e.kind == event_kind::run_begin || e.kind == event_kind::run_end) {
    ops_step_ = knows_ops_ ? std::max(ops_step_, e.step) : e.step;
    knows_ops_ = true;
  } else if (e.kind == event_kind::step_end && e.step > ops_step_) {
    knows_ops_ = false;
    std::ranges::fill(held_, 0);
    std::ranges::fill(of_device_, 0);
  }
}

std::optional<memory_change> memory_account::apply(const trace_event& e) {
  note_level(e);
  const auto id = allocated_by(e);
  if (id >= held_.size() || graph_.handles[id].device >= of_device_.size())
    return {};
  if (e.kind == event_kind::feed && (!knows_ops_ || !is_freed_[id]))
    return {}; // freed unseen; or a persistable variable, which is not freed
  const auto device = graph_.handles[id].device;
  if (e.kind == event_kind::deallocation) {
    is_freed_[id] = true;
    const auto bytes = std::min(e.amount, held_[id]);
    held_[id] -= bytes;
    of_device_[device] -= bytes;
    return memory_change{device, id, -static_cast<std::int64_t>(bytes)};
  }
  held_[id] += e.amount;
  of_device_[device] += e.amount;
  return memory_change{device, id, static_cast<std::int64_t>(e.amount)};
}

} // namespace troupe::trace
