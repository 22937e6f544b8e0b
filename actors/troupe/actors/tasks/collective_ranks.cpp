// SPDX-License-Identifier: Apache-2.0
#include <troupe/actors/tasks/collective_ranks.hpp>

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

void collective_ranks::give_up(step_id step, const error& reason) {
  if (all_are_here())
    return;
  const auto first = step * calls_per_step_ + others_ + 1;
  for (auto& end : ends_)
    if (end)
      end->give_up(first, first + calls_per_step_ - 1, reason);
}

void collective_ranks::leave(const error& reason) {
  for (auto& end : ends_)
    if (end)
      end->leave(reason);
}

} // namespace troupe::actors
