// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>

namespace troupe {

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
  /// meanwhile.
  bool wait_for_step();
  /// Waits for as long as an op is to be delayed, or until `interrupt`.
  void wait_before_op();
  /// Ends all waiting that is under way. What comes later waits again.
  void interrupt();

private:
  mutable std::mutex mutex_; // guards all but the delay
  std::condition_variable changed_;
  bool is_paused_ = false;
  std::uint64_t admitted_ = 0; // single steps that may still begin
  std::uint64_t interrupts_ = 0;
  // Relaxed: it orders nothing, and may be seen late.
  std::atomic<std::int64_t> op_delay_ms_{0};
};

} // namespace troupe
