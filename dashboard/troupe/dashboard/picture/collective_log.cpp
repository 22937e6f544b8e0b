// SPDX-License-Identifier: Apache-2.0
#include <troupe/dashboard/picture/collective_log.hpp>

#include <algorithm>

namespace troupe::dashboard {

// The values of all devices that an op merges are among its inputs. One of
// several ranks has only those of its own device.
collective_log::collective_log(const trace::graph_info& graph) {
  for (handle_id id = 0; id < graph.handles.size(); ++id)
    if (graph.handles[id].is_collective)
      calls_[id];
  for (const auto& e : graph.edges) {
    const auto found = calls_.find(e.to);
    if (found == calls_.end() || e.from >= graph.handles.size()
        || graph.handles[e.from].is_op || e.distance > 0)
      continue;
    found->second.expected.push_back(graph.handles[e.from].device);
  }
  for (auto& [id, call] : calls_) {
    std::ranges::sort(call.expected);
    const auto rest = std::ranges::unique(call.expected);
    call.expected.erase(rest.begin(), rest.end());
  }
}

void collective_log::add(const trace_event& e) {
  if (e.kind == event_kind::arrival)
    arrive(e);
  else if (e.kind == event_kind::merge_end)
    end(e);
}

void collective_log::arrive(const trace_event& e) {
  const auto found = calls_.find(e.from);
  if (found == calls_.end())
    return;
  auto& call = found->second;
  if (call.arrived.empty() || call.step != e.step) {
    call.step = e.step;
    call.first_ns = e.time;
    call.is_over = false;
    call.arrived.clear();
  }
  const auto device = static_cast<std::uint32_t>(e.amount);
  if (std::ranges::find(call.arrived, device) == call.arrived.end())
    call.arrived.push_back(device);
}

void collective_log::end(const trace_event& e) {
  const auto found = calls_.find(e.from);
  if (found == calls_.end() || found->second.step != e.step
      || found->second.arrived.empty())
    return;
  auto& call = found->second;
  call.is_over = true;
  call.last_ns = e.time - std::min(e.time, call.first_ns);
  call.total_ns += static_cast<double>(call.last_ns);
  ++call.calls;
}

} // namespace troupe::dashboard
