// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/base/clock.hpp>

#include <atomic>
#include <cstdint>

#if defined(__x86_64__) || defined(__i386__)
#include <immintrin.h>
#endif

namespace troupe {

/// Tells the core that this thread is spinning.
inline void relax() noexcept {
#if defined(__x86_64__) || defined(__i386__)
  _mm_pause();
#endif
}

/// A cheap clock for comparisons on one thread. Counts time stamp counter ticks
/// on x86 and nanoseconds elsewhere.
inline std::uint64_t ticks() noexcept {
#if defined(__x86_64__) || defined(__i386__)
  return __rdtsc();
#else
  return now_ns();
#endif
}

/// A spin lock for critical sections of a few instructions.
class spin_flag {
public:
  /// Spins until the lock is free, then takes it.
  void lock() noexcept {
    // Acquire pairs with the release in unlock.
    while (held_.exchange(true, std::memory_order_acquire))
      while (held_.load(std::memory_order_relaxed))
        relax();
  }
  /// Releases the lock. Only the thread that holds it may call this.
  void unlock() noexcept { held_.store(false, std::memory_order_release); }

private:
  std::atomic<bool> held_{false};
};

} // namespace troupe
