// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/base/ids.hpp>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <vector>

namespace troupe {

/// An op that a worker has taken, and that is about to begin.
struct delayed_op {
  handle_id handle = no_handle;
  step_id step = 0;
  std::size_t worker = 0;
};

/// Holds a run up for those who look at it: pauses it between two steps, lets
/// single steps through, and slows ops down. What is computed stays the same.
///
/// Thread rule: any thread.
class run_pace {
public:
  /// The next step does not begin before `resume` or `admit_step`. Steps that
  /// are under way end.
  void pause();
  /// Ends the pause.
  void resume();
  /// Lets one more step begin while the run is paused.
  void admit_step();
  /// Whether steps are held back.
  bool is_paused() const;
  /// Each op begins so much later. Only while events of level `ops` are
  /// recorded, because ops that nobody looks at go another way.
  void delay_ops(std::chrono::milliseconds by);
  /// How much later each op begins.
  std::chrono::milliseconds op_delay() const noexcept {
    return std::chrono::milliseconds{
      op_delay_ms_.load(std::memory_order_relaxed)};
  }

  /// Returns when the next step may begin; false if `interrupt` was called
  /// meanwhile. Does not wait if a step is reserved, which it uses up.
  bool wait_for_step();
  ///@{
  /// For who submits steps and cannot wait. `reserve_step` is true if a step
  /// may begin: the next `wait_for_step` then returns at once, whatever comes
  /// between. `return_step` gives a step back that does not begin after all.
  bool reserve_step();
  void return_step();
  ///@}
  /// `function` is called after each `resume` and `admit_step`, on the thread
  /// that called it, and must not wait. It replaces the one before.
  void when_steps_may_begin(std::function<void()> function);
  /// The ops that are being delayed now.
  std::vector<delayed_op> delayed_ops() const;
  /// Waits for as long as the op is to be delayed, or until `interrupt`.
  void wait_before_op(const delayed_op& op);
  /// Ends all waiting that is under way. What comes later waits again.
  void interrupt();

private:
  void tell();

  mutable std::mutex mutex_; // guards all but the delay
  std::condition_variable changed_;
  bool is_paused_ = false;
  std::uint64_t admitted_ = 0; // single steps that may still begin
  std::uint64_t interrupts_ = 0;
  bool is_reserved_ = false;    // a step that may begin in spite of a pause
  bool took_admission_ = false; // the reserved step is one of `admitted_`
  std::function<void()> when_steps_may_begin_;
  std::vector<delayed_op> delayed_; // one per worker at most
  // Relaxed: it orders nothing, and may be seen late.
  std::atomic<std::int64_t> op_delay_ms_{0};
};

} // namespace troupe
