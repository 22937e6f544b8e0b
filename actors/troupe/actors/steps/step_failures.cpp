// SPDX-License-Identifier: Apache-2.0
#include <troupe/actors/steps/step_failures.hpp>

#include <troupe/actors/engine/graph_context.hpp>
#include <troupe/actors/engine/step_state.hpp>
#include <troupe/actors/remote/transport.hpp>
#include <troupe/actors/tasks/collective_ranks.hpp>

#include <utility>
#include <vector>

namespace troupe::actors {

error step_failures::behind_a_failure() {
  return {errc::cancelled, "a step before it failed"};
}

void step_failures::admit(step_id id, step_id oldest, bool has_no_past) {
  auto& step = context_.state_of(id);
  if (ranks_)
    ranks_->number_calls(id, step.updates);
  std::lock_guard guard{mutex_};
  step.id = id;
  step.has_no_past = has_no_past;
  step.take_error();
  step.failed.store(false, std::memory_order_relaxed);
  step.under_way.store(true, std::memory_order_relaxed);
  // Under the lock, so that a step that fails now sees that this step is
  // running.
  for (auto before = oldest; before < id; ++before)
    if (context_.state_of(before).failed.load(std::memory_order_relaxed))
      step.fail(behind_a_failure().with_context({.step = id}));
  admitted_ = id + 1;
  if (abandoned_ && id >= abandoned_from_)
    step.fail(*abandoned_);
  if (auto told = ahead_.extract(id))
    step.fail(std::move(told.mapped()));
}

void step_failures::fail_from(step_id first, const error& reason) noexcept {
  std::vector<step_id> failed;
  {
    std::lock_guard guard{mutex_};
    for (auto& s : context_.steps)
      if (s->id >= first && s->under_way.load(std::memory_order_relaxed)) {
        s->fail(reason.with_context({.step = s->id}));
        failed.push_back(s->id);
      }
  }
  for (auto step : failed)
    stop_waiting(step, reason);
}

void step_failures::stop_waiting(step_id failed, const error& reason) noexcept {
  if (transfers_)
    transfers_->give_up(failed, reason);
  if (ranks_)
    ranks_->give_up(failed, reason);
}

void step_failures::fail_behind(step_id failed) noexcept {
  fail_from(failed + 1, behind_a_failure());
}

// A failure that arrives before its step is admitted is kept until then. Their
// number is limited: other processes that run the same steps are at most a few
// steps ahead.
void step_failures::failed_elsewhere(step_id id, const error& reason) {
  constexpr std::size_t most_ahead = 4096;
  {
    std::lock_guard guard{mutex_};
    if (id >= admitted_) {
      if (ahead_.size() < most_ahead)
        ahead_.emplace(id, reason);
      return;
    }
    auto& step = context_.state_of(id);
    if (step.id != id || !step.under_way.load(std::memory_order_relaxed))
      return; // the step has ended here
    step.fail(reason);
  }
  stop_waiting(id, reason);
  fail_behind(id);
}

// The loss of one process ends the run, because no process can run a step
// alone.
void step_failures::process_is_gone(step_id first_without,
                                    const error& reason) {
  {
    std::lock_guard guard{mutex_};
    if (abandoned_ && abandoned_from_ <= first_without)
      return;
    abandoned_ = reason;
    abandoned_from_ = first_without;
  }
  fail_from(first_without, reason);
  // A process that leaves has made all calls of earlier steps. One that is lost
  // may be in the middle of one.
  if (ranks_ && first_without == 0)
    ranks_->leave(reason);
}

std::optional<error> step_failures::obstacle_to(step_id id) const {
  std::lock_guard guard{mutex_};
  if (abandoned_ && id >= abandoned_from_)
    return abandoned_;
  return std::nullopt;
}

void step_failures::require_can_run(step_id id) const {
  if (const auto why = obstacle_to(id))
    throw *why;
}

} // namespace troupe::actors
