// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/base/clock.hpp>

#include <concepts>
#include <cstdint>
#include <limits>

namespace troupe {

/// What two clocks showed at one moment.
struct clock_pair {
  std::uint64_t outer = 0;
  std::uint64_t inner = 0;
};

/// Reads two clocks at one moment: `inner` between two readings of `outer`, a
/// few times, of which the shortest counts. A thread can lose its core between
/// two readings, for milliseconds; one pair of readings would be as much wrong.
///
/// @param outer,inner functions that read a clock, in any unit. `outer` never
///   goes back.
template <std::invocable Outer, std::invocable Inner>
clock_pair read_together(Outer outer, Inner inner) {
  constexpr int tries = 4;
  clock_pair best;
  auto shortest = std::numeric_limits<std::uint64_t>::max();
  for (int i = 0; i < tries; ++i) {
    const std::uint64_t before = outer();
    const auto between = static_cast<std::uint64_t>(inner());
    const std::uint64_t took = outer() - before;
    if (took < shortest) {
      shortest = took;
      best = {before + took / 2, between};
    }
  }
  return best;
}

/// The host's clock (see unix_now_ns) at `moment`, a time of now_ns. Right to a
/// fraction of a microsecond, if it was not set since then.
inline std::int64_t unix_ns_at(std::uint64_t moment) noexcept {
  const auto now = read_together(now_ns, unix_now_ns);
  return static_cast<std::int64_t>(now.inner - now.outer + moment);
}

} // namespace troupe
