// SPDX-License-Identifier: Apache-2.0
#include <troupe/base/event_reader.hpp>

#include <algorithm>
#include <cstddef>
#include <ranges>
#include <utility>
#include <vector>

namespace troupe {

namespace {

/// Sorts events by time, of which the first `sorted` are in order. The others
/// are those of a ring: nearly always in order too, so that one merge does.
void merge_from(std::vector<trace_event>& events, std::size_t sorted) {
  const auto added = std::ranges::subrange{
    events.begin() + static_cast<std::ptrdiff_t>(sorted), events.end()};
  if (!std::ranges::is_sorted(added, {}, &trace_event::time))
    std::ranges::stable_sort(added, {}, &trace_event::time);
  std::ranges::inplace_merge(events, added.begin(), {}, &trace_event::time);
}

} // namespace

event_reader::event_reader(const recorder& from, start where, trace_level up_to)
  : from_(&from), up_to_(up_to), begins_with_oldest_(where == start::oldest) {
  if (where == start::now)
    for (auto& ring : from.rings())
      next_.push_back(ring->written());
}

std::vector<trace_event> event_reader::take() {
  std::vector<trace_event> events;
  const auto rings = from_->rings();
  next_.resize(rings.size());       // of rings made since the last call: 0
  std::uint64_t complete_since = 0; // a time
  for (std::size_t i = 0; i < rings.size(); ++i) {
    const auto first = events.size();
    const auto overwritten = rings[i]->read(next_[i], events);
    lost_ += overwritten;
    if (overwritten > 0 && first < events.size())
      complete_since = std::max(complete_since, events[first].time);
    merge_from(events, first);
  }
  // Rings that record little go back farther. Without the others, their events
  // would be parts of steps.
  if (std::exchange(begins_with_oldest_, false))
    lost_ += std::erase_if(events, [complete_since](const trace_event& e) {
      return e.time < complete_since;
    });
  std::erase_if(
    events, [this](const trace_event& e) { return level_of(e.kind) > up_to_; });
  return events;
}

} // namespace troupe
