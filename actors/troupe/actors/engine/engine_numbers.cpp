// SPDX-License-Identifier: Apache-2.0
// Steps that the engine does not run.
#include <troupe/actors/engine/engine.hpp>

#include <vector>

namespace troupe::actors {

// Counters of a mailbox belong to steps by their numbers, and some hold
// messages that earlier steps have sent. They move together. Relaxed: nothing
// of a step is under way, and the admission of the next one publishes them.
void engine::renumber(step_id next, step_id as) {
  const auto counters = counter_mask_ + 1;
  std::vector<std::uint32_t> missing(counters);
  const auto move = [&](auto& boxes, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      auto& m = boxes.at(boxes.number_of(i));
      for (step_id ahead = 0; ahead < counters; ++ahead)
        missing[ahead] =
          mailbox_count::messages(boxes.counter(m, which_counter(next + ahead))
                                    .load(std::memory_order_relaxed));
      for (step_id ahead = 0; ahead < counters; ++ahead)
        boxes.counter(m, which_counter(as + ahead))
          .store(missing[ahead]
                   | std::uint32_t{round_of(as + ahead)}
                       << mailbox_count::round_shift,
                 std::memory_order_relaxed);
    }
  };
  move(ops_, op_handles_.size());
  move(variables_, variable_handles_.size());
  for (auto& s : streams_)
    s.start.go_on_with(as);
}

} // namespace troupe::actors
