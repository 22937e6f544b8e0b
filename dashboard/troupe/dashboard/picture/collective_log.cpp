// SPDX-License-Identifier: Apache-2.0
#include <troupe/dashboard/picture/collective_log.hpp>

#include <algorithm>
#include <string>
#include <utility>

namespace troupe::dashboard {

namespace {

bool holds_gradient(const trace::handle_info& variable) {
  return variable.type.find("@GRAD") != std::string::npos;
}

std::vector<std::uint32_t>
devices_with(const std::vector<merged_value>& values) {
  std::vector<std::uint32_t> devices;
  for (const auto& value : values)
    devices.push_back(value.device);
  std::ranges::sort(devices);
  const auto rest = std::ranges::unique(devices);
  devices.erase(rest.begin(), rest.end());
  return devices;
}

} // namespace

// The values of all devices that an op merges are among its inputs. One of
// several ranks has only those of its own device.
collective_log::collective_log(const trace::graph_info& graph)
  : merge_themselves_(graph.handles.size()) {
  const auto& handles = graph.handles;
  for (handle_id id = 0; id < handles.size(); ++id)
    if (handles[id].is_collective)
      calls_[id];
  std::map<handle_id, std::vector<merged_value>> gradients; // of other ops
  for (const auto& e : graph.edges) {
    if (e.from >= handles.size() || e.to >= handles.size() || e.distance > 0
        || handles[e.from].is_op)
      continue;
    const merged_value value{e.from, handles[e.from].device};
    if (const auto found = calls_.find(e.to); found != calls_.end())
      found->second.values.push_back(value);
    else if (handles[e.to].is_op && holds_gradient(handles[e.from]))
      gradients[e.to].push_back(value);
  }
  for (auto& [op, values] : gradients)
    if (devices_with(values).size() > 1) {
      merge_themselves_[op] = true;
      calls_[op].values = std::move(values);
    }
  for (auto& [op, call] : calls_)
    call.expected = devices_with(call.values);
}

void collective_log::add(const trace_event& e) {
  switch (e.kind) {
  case event_kind::arrival:
    return arrive(e.from, e, static_cast<std::uint32_t>(e.amount));
  case event_kind::merge_end: return end(e);
  case event_kind::message: return take_message(e);
  case event_kind::run_begin: return begin_run(e);
  case event_kind::run_end:
    if (merges_itself(e.from))
      end(e);
    return;
  default: return;
  }
}

void collective_log::forget_open() {
  come_.clear();
  for (auto& [op, call] : calls_)
    if (!call.is_over)
      call.arrived.clear();
}

bool collective_log::merges_itself(handle_id op) const noexcept {
  return op < merge_themselves_.size() && merge_themselves_[op];
}

void collective_log::take_message(const trace_event& e) {
  if (!merges_itself(e.to))
    return;
  const auto& values = calls_[e.to].values;
  const auto sent = std::ranges::find(values, e.from, &merged_value::variable);
  if (sent == values.end())
    return;
  auto& come = come_[e.to];
  if (come.step != e.step)
    come = {e.step, {}};
  come.values.push_back(e.from);
  const auto is_missing = [&](const merged_value& value) {
    return value.device == sent->device
           && std::ranges::find(come.values, value.variable)
                == come.values.end();
  };
  if (std::ranges::none_of(values, is_missing))
    arrive(e.to, e, sent->device);
}

// Not every edge sends a message: an op that begins has all values.
void collective_log::begin_run(const trace_event& e) {
  if (!merges_itself(e.from))
    return;
  for (auto device : calls_[e.from].expected)
    arrive(e.from, e, device);
  come_[e.from].values.clear();
}

void collective_log::arrive(handle_id op, const trace_event& e,
                            std::uint32_t device) {
  const auto found = calls_.find(op);
  if (found == calls_.end())
    return;
  auto& call = found->second;
  if (call.arrived.empty() || call.step != e.step) {
    call.step = e.step;
    call.first_ns = e.time;
    call.is_over = false;
    call.arrived.clear();
  }
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
