// SPDX-License-Identifier: Apache-2.0
#include <troupe/trace/analysis/memory_use.hpp>

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

/// Bytes that each temporary holds, and their sum by device.
class memory_account {
public:
  memory_account(const process_trace& part)
    : graph_(part.graph), held_(part.graph.handles.size()),
      is_freed_(held_.size()), of_device_(part.graph.devices.size()) {
    for (const auto& e : part.events)
      if (e.kind == event_kind::deallocation && e.to < is_freed_.size())
        is_freed_[e.to] = true;
  }
  /// Returns the device whose memory grew; its number of devices if none did.
  std::size_t apply(const trace_event& e) {
    const auto id = allocated_by(e);
    const auto nothing = of_device_.size();
    if (id >= held_.size() || graph_.handles[id].device >= nothing)
      return nothing;
    const auto device = graph_.handles[id].device;
    if (e.kind == event_kind::deallocation) {
      // What was allocated before the trace began, or in lost events.
      const auto bytes = std::min(e.amount, held_[id]);
      held_[id] -= bytes;
      of_device_[device] -= bytes;
      return nothing;
    }
    if (e.kind == event_kind::feed && !is_freed_[id])
      return nothing; // a persistable variable
    held_[id] += e.amount;
    of_device_[device] += e.amount;
    return device;
  }
  std::uint64_t bytes(std::size_t device) const { return of_device_[device]; }
  std::vector<held_memory> holders(std::size_t device) const {
    std::vector<held_memory> found;
    for (handle_id id = 0; id < held_.size(); ++id)
      if (held_[id] > 0 && graph_.handles[id].device == device)
        found.push_back({id, held_[id]});
    std::ranges::stable_sort(found, std::ranges::greater{},
                             &held_memory::bytes);
    return found;
  }

private:
  const graph_info& graph_;
  std::vector<std::uint64_t> held_;
  std::vector<bool> is_freed_;
  std::vector<std::uint64_t> of_device_;
};

void add_peaks_of(const process_trace& part, std::vector<memory_peak>& peaks) {
  const auto devices = part.graph.devices.size();
  std::vector<memory_peak> found(devices);
  std::vector<std::size_t> index(devices); // of the event of the peak
  memory_account first{part};
  for (std::size_t i = 0; i < part.events.size(); ++i) {
    const auto& e = part.events[i];
    const auto device = first.apply(e);
    if (device == devices || first.bytes(device) <= found[device].bytes)
      continue;
    found[device] = {device, first.bytes(device), e.time, e.step, {}};
    index[device] = i;
  }
  // Once more, to see who held the memory at the peaks.
  memory_account second{part};
  const auto last = devices > 0 ? std::ranges::max(index) : 0;
  for (std::size_t i = 0; i <= last && i < part.events.size(); ++i) {
    second.apply(part.events[i]);
    for (std::size_t d = 0; d < devices; ++d)
      if (index[d] == i && found[d].bytes > 0)
        found[d].holders = second.holders(d);
  }
  for (auto& p : found)
    if (p.bytes > 0)
      peaks.push_back(std::move(p));
}

} // namespace

std::vector<memory_peak>
find_memory_peaks(std::span<const process_trace> parts) {
  std::vector<memory_peak> peaks;
  for (const auto& part : parts)
    add_peaks_of(part, peaks);
  std::ranges::stable_sort(peaks, {}, &memory_peak::device);
  return peaks;
}

} // namespace troupe::trace
