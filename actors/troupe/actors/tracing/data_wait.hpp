// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/base/clock.hpp>

#include <atomic>
#include <cstdint>

namespace troupe {

/// Says that an application waits for its next batch, so that a
/// `step_watchdog` can tell a slow source from an application without work.
///
/// Thread rule: `begin` and `end` on the application's thread; `since_ns` from
/// any thread.
class data_wait {
public:
  /// The application asks for the data of step `number` of its run.
  void begin(std::uint64_t number) noexcept {
    number_.store(number, std::memory_order_relaxed);
    // Release: whoever sees the time also sees the number of its step.
    since_ns_.store(now_ns(), std::memory_order_release);
  }
  /// It has the data.
  void end() noexcept { since_ns_.store(0, std::memory_order_relaxed); }

  /// When the wait has begun, by `now_ns`; 0 if there is none.
  std::uint64_t since_ns() const noexcept {
    return since_ns_.load(std::memory_order_acquire);
  }
  /// The step of `begin`. Counts while `since_ns` is not 0.
  std::uint64_t number() const noexcept {
    return number_.load(std::memory_order_relaxed);
  }

private:
  std::atomic<std::uint64_t> since_ns_{0};
  std::atomic<std::uint64_t> number_{0};
};

} // namespace troupe
