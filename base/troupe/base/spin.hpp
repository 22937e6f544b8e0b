// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/base/clock.hpp>

#include <atomic>
#include <cstdint>

#if defined(__x86_64__) || defined(__i386__)
#include <immintrin.h>
#endif

namespace troupe {

/// Tells the core that this thread polls.
inline void relax() noexcept {
#if defined(__x86_64__) || defined(__i386__)
  _mm_pause();
#endif
}

/// A cheap clock for comparisons on one thread: cycles of constant length
/// where the processor counts them, else nanoseconds.
inline std::uint64_t ticks() noexcept {
#if defined(__x86_64__) || defined(__i386__)
  return __rdtsc();
#else
  return now_ns();
#endif
}

/// A lock for a handful of instructions.
class spin_flag {
public:
  /// Waits without sleeping until the lock is free, and takes it.
  void lock() noexcept {
    // Acquire pairs with the release in unlock.
    while (held_.exchange(true, std::memory_order_acquire))
      while (held_.load(std::memory_order_relaxed))
        relax();
  }
  /// By the thread that has it.
  void unlock() noexcept { held_.store(false, std::memory_order_release); }

private:
  std::atomic<bool> held_{false};
};

} // namespace troupe
