// SPDX-License-Identifier: Apache-2.0
// Sends messages in an order that a test's seed draws.
#include <troupe/actors/engine/disturbance.hpp>
#include <troupe/actors/engine/engine.hpp>
#include <troupe/actors/engine/graph_context.hpp>
#include <troupe/actors/engine/observer.hpp>

#include <algorithm>
#include <utility>
#include <vector>

namespace troupe::actors {

// Messages to later steps come after those of the current step.
void engine::tell_shuffled(const told& targets, step_id step, handle_id from,
                           observed& o) {
  auto draw = o.disturbs()->draws_for(from, step);
  std::vector<std::uint32_t> now{targets.now.begin(), targets.now.end()};
  std::shuffle(now.begin(), now.end(), draw);
  for (auto word : now)
    tell_observed(target::from_word(word), told_in(step), from, o);
  std::vector<std::pair<std::uint32_t, std::uint32_t>> later;
  for (std::size_t i = 0; i < targets.later.size(); i += 2)
    later.emplace_back(targets.later[i], targets.later[i + 1]);
  std::shuffle(later.begin(), later.end(), draw);
  for (auto [word, distance] : later)
    tell_observed(target::from_word(word), told_in(step + distance), from, o);
}

// Messages that earlier steps would have sent are for this step too, so all
// messages are shuffled together.
void engine::start_shuffled(const engine_stream& s, step_id step, observed& o) {
  auto starts = s.starts;
  for (auto [to, distance] : s.first_starts)
    if (step < distance)
      starts.push_back(to);
  if (starts.empty())
    return;
  // Each stream draws its own order.
  auto draw = o.disturbs()->draws_for(receiver_of(starts.front()), step);
  std::shuffle(starts.begin(), starts.end(), draw);
  for (auto to : starts)
    tell_observed(to, told_in(step), no_handle, o);
}

// Messages to later steps come after those of the current step.
void engine::tell_completion_shuffled(const pending_op& op, step_id step,
                                      observed& o) {
  auto messages = op.on_completion;
  auto draw = o.disturbs()->draws_for(handle_of(*op.box), step);
  std::shuffle(messages.begin(), messages.end(), draw);
  std::ranges::stable_partition(
    messages, [](const pending_op::message& m) { return m.distance == 0; });
  for (auto& m : messages)
    tell_observed(m.to, told_in(step + m.distance), m.from, o);
}

} // namespace troupe::actors
