// SPDX-License-Identifier: Apache-2.0
#include <troupe/trace/analysis/memory_use.hpp>

#include <troupe/trace/analysis/memory_account.hpp>

#include <algorithm>

namespace troupe::trace {

namespace {

/// What holds memory on a device, the largest first.
std::vector<held_memory> holders_of(const memory_account& account,
                                    const graph_info& graph,
                                    std::size_t device) {
  std::vector<held_memory> found;
  for (handle_id id = 0; id < graph.handles.size(); ++id)
    if (account.held(id) > 0 && graph.handles[id].device == device)
      found.push_back({id, account.held(id)});
  std::ranges::stable_sort(found, std::ranges::greater{}, &held_memory::bytes);
  return found;
}

void add_peaks_of(const process_trace& part, std::vector<memory_peak>& peaks) {
  const auto devices = part.graph.devices.size();
  std::vector<memory_peak> found(devices);
  std::vector<std::size_t> index(devices); // of the event of the peak
  memory_account first{part};
  for (std::size_t i = 0; i < part.events.size(); ++i) {
    const auto& e = part.events[i];
    const auto change = first.apply(e);
    if (!change || first.bytes(change->device) <= found[change->device].bytes)
      continue;
    const auto device = change->device;
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
        found[d].holders = holders_of(second, part.graph, d);
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
