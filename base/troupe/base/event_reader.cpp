// SPDX-License-Identifier: Apache-2.0
#include <troupe/base/event_reader.hpp>

#include <algorithm>
#include <cstddef>

namespace troupe {

event_reader::event_reader(recorder& from, start where, trace_level up_to)
  : from_(&from), up_to_(up_to) {
  if (where == start::now)
    for (auto& ring : from.rings())
      next_.push_back(ring->written());
}

std::vector<trace_event> event_reader::take() {
  std::vector<trace_event> events;
  const auto rings = from_->rings();
  next_.resize(rings.size()); // of rings made since the last call: 0
  for (std::size_t i = 0; i < rings.size(); ++i)
    lost_ += rings[i]->read(next_[i], events);
  std::erase_if(
    events, [this](const trace_event& e) { return level_of(e.kind) > up_to_; });
  std::ranges::stable_sort(events, {}, &trace_event::time);
  return events;
}

} // namespace troupe
