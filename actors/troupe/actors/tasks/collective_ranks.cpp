// SPDX-License-Identifier: Apache-2.0
#include <troupe/actors/tasks/collective_ranks.hpp>

#include <troupe/actors/engine/step_state.hpp>

#include <algorithm>
#include <utility>

namespace troupe::actors {

collective_ranks::~collective_ranks() {
  if (queue_)
    queue_->detach(*this);
}

void collective_ranks::attach_to(job_queue& queue) noexcept {
  if (any_end() && queue.attach(*this))
    queue_ = &queue;
}

// All ends of a process are ends of one group, so one is enough to look.
comm::communicator* collective_ranks::any_end() const noexcept {
  const auto found =
    std::ranges::find_if(ends_, [](const auto& end) { return end != nullptr; });
  return found == ends_.end() ? nullptr : found->get();
}

void collective_ranks::begin_looking() noexcept {
  any_end()->begin_looking();
}

void collective_ranks::look() noexcept {
  any_end()->progress();
}

void collective_ranks::end_looking() noexcept {
  any_end()->end_looking();
}

void collective_ranks::join(
  std::vector<std::unique_ptr<comm::communicator>> ends) {
  for (auto& end : ends) {
    auto& place = ends_[end->rank()];
    place = std::move(end);
  }
}

bool collective_ranks::all_are_here() const {
  return std::ranges::all_of(ends_,
                             [](const auto& end) { return end != nullptr; });
}

void collective_ranks::number_calls(step_id step, bool updates) {
  const auto count = calls_per_step_ + (updates ? calls_per_update_ : 0);
  std::lock_guard guard{numbering_};
  calls_of_[step % calls_of_.size()] = {step, next_, count};
  next_ += count;
}

/// None if a later step has the step's place: then it has ended.
collective_ranks::numbered_calls
collective_ranks::calls_of(step_id step) const {
  std::lock_guard guard{numbering_};
  const auto& found = calls_of_[step % calls_of_.size()];
  return found.step == step ? found : numbered_calls{};
}

std::optional<step_call> collective_ranks::in_step(ticket number) const {
  std::lock_guard guard{numbering_};
  for (const auto& calls : calls_of_)
    if (number >= calls.first && number - calls.first < calls.count)
      return step_call{calls.step, number - calls.first,
                       calls.count > calls_per_step_};
  return std::nullopt;
}

// The step is marked as failed before `give_up` looks at the rank's calls, and
// this adds the call before it looks at the mark. Both use the rank's lock, so
// one of them sees the other.
launch_result collective_ranks::start(std::size_t device,
                                      const comm::collective_call& call,
                                      completion& whole,
                                      const step_state& step) const {
  auto& end = of(device);
  const auto started = end.start(call, whole);
  if (started.state == launch_status::pending && !all_are_here()
      && step.failed.load(std::memory_order_relaxed))
    end.give_up(started.position, started.position, step.reason());
  return started;
}

void collective_ranks::give_up(step_id step, const error& reason) {
  if (all_are_here())
    return;
  const auto calls = calls_of(step);
  if (calls.count == 0)
    return;
  for (auto& end : ends_)
    if (end)
      end->give_up(calls.first, calls.first + calls.count - 1, reason);
}

void collective_ranks::leave(const error& reason) {
  for (auto& end : ends_)
    if (end)
      end->leave(reason);
}

} // namespace troupe::actors
