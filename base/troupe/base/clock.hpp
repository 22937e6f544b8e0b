// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>

namespace troupe {

inline constexpr double ns_per_us = 1e3; ///< nanoseconds in a microsecond
inline constexpr double ns_per_ms = 1e6; ///< nanoseconds in a millisecond

/// Monotonic time in nanoseconds since an arbitrary start.
inline std::uint64_t now_ns() noexcept {
  using namespace std::chrono;
  auto since = steady_clock::now().time_since_epoch();
  return static_cast<std::uint64_t>(duration_cast<nanoseconds>(since).count());
}

/// Nanoseconds since 1970 (UTC), by the host's clock, which can be set.
inline std::int64_t unix_now_ns() noexcept {
  using namespace std::chrono;
  auto since = system_clock::now().time_since_epoch();
  return duration_cast<nanoseconds>(since).count();
}

} // namespace troupe
