// SPDX-License-Identifier: Apache-2.0
#include <troupe/actors/steps/run_pace.hpp>

#include <utility>

namespace troupe {

void run_pace::pause() {
  std::lock_guard guard{mutex_};
  if (!std::exchange(is_paused_, true))
    admitted_ = 0;
}

void run_pace::resume() {
  {
    std::lock_guard guard{mutex_};
    is_paused_ = false;
  }
  tell();
}

void run_pace::admit_step() {
  {
    std::lock_guard guard{mutex_};
    if (is_paused_)
      ++admitted_;
  }
  tell();
}

bool run_pace::is_paused() const {
  std::lock_guard guard{mutex_};
  return is_paused_;
}

void run_pace::delay_ops(std::chrono::milliseconds by) {
  op_delay_ms_.store(by.count(), std::memory_order_relaxed);
  changed_.notify_all(); // ops that wait for a longer time
}

bool run_pace::wait_for_step() {
  std::unique_lock lock{mutex_};
  if (std::exchange(is_reserved_, false))
    return true;
  const auto before = interrupts_;
  changed_.wait(lock, [&] {
    return !is_paused_ || admitted_ > 0 || interrupts_ != before;
  });
  if (interrupts_ != before)
    return false;
  if (is_paused_)
    --admitted_;
  return true;
}

bool run_pace::reserve_step() {
  std::lock_guard guard{mutex_};
  if (is_reserved_)
    return true;
  if (is_paused_ && admitted_ == 0)
    return false;
  took_admission_ = is_paused_;
  if (took_admission_)
    --admitted_;
  is_reserved_ = true;
  return true;
}

void run_pace::return_step() {
  std::lock_guard guard{mutex_};
  if (std::exchange(is_reserved_, false) && took_admission_ && is_paused_)
    ++admitted_;
}

void run_pace::when_steps_may_begin(std::function<void()> function) {
  std::lock_guard guard{mutex_};
  when_steps_may_begin_ = std::move(function);
}

void run_pace::tell() {
  changed_.notify_all();
  std::function<void()> function;
  {
    std::lock_guard guard{mutex_};
    function = when_steps_may_begin_;
  }
  if (function)
    function();
}

std::vector<delayed_op> run_pace::delayed_ops() const {
  std::lock_guard guard{mutex_};
  return delayed_;
}

void run_pace::wait_before_op(const delayed_op& op) {
  const auto delay = op_delay();
  if (delay.count() <= 0)
    return;
  std::unique_lock lock{mutex_};
  const auto before = interrupts_;
  delayed_.push_back(op);
  changed_.wait_for(
    lock, delay, [&] { return interrupts_ != before || op_delay() < delay; });
  std::erase_if(delayed_, [&](const auto& d) { return d.worker == op.worker; });
}

void run_pace::interrupt() {
  {
    std::lock_guard guard{mutex_};
    ++interrupts_;
  }
  changed_.notify_all();
}

} // namespace troupe
