// SPDX-License-Identifier: Apache-2.0
#include <troupe/actors/tasks/rank_meeting.hpp>

#include <exception>
#include <utility>

namespace troupe::actors {

launch_status rank_meeting::come(std::size_t rank, step_state& step,
                                 completion& whole) {
  {
    std::lock_guard guard{mutex_};
    waiting_[rank] = &whole;
    if (++came_ < waiting_.size())
      return launch_status::pending;
    came_ = 0;
    waiting_[rank] = nullptr;
  }
  // All ranks have arrived, and none arrives again before it is notified.
  std::exception_ptr failure;
  if (!step.failed.load(std::memory_order_relaxed))
    try {
      joint_->run(step, whole); // always done when it returns
    } catch (...) {
      failure = std::current_exception();
    }
  for (auto& other : waiting_)
    if (auto* hears = std::exchange(other, nullptr))
      hears->completed(failure);
  if (failure)
    std::rethrow_exception(failure);
  return launch_status::done;
}

namespace {

class rank_task final : public op_task {
public:
  rank_task(std::shared_ptr<rank_meeting> at, std::size_t rank)
    : at_(std::move(at)), rank_(rank) {}

  launch_status run(step_state& step, completion& whole) override {
    return at_->come(rank_, step, whole);
  }
  // The other ranks still wait for this one.
  launch_status skip(step_state& step, completion& whole) override {
    return at_->come(rank_, step, whole);
  }

private:
  std::shared_ptr<rank_meeting> at_;
  std::size_t rank_;
};

} // namespace

std::unique_ptr<op_task> make_rank_task(std::shared_ptr<rank_meeting> at,
                                        std::size_t rank) {
  return std::make_unique<rank_task>(std::move(at), rank);
}

} // namespace troupe::actors
