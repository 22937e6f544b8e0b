// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/base/error.hpp>

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <type_traits>

namespace troupe {

/// How many numbers are in [start, end), rounded up as in Paddle. Throws
/// error(invalid_argument) if there is no end.
template <class T>
std::int64_t range_count(T start, T end, T step) {
  if (!(step > 0 || step < 0) || (start < end && step < 0)
      || (start > end && step > 0))
    throw error(errc::invalid_argument, "a range from " + std::to_string(start)
                                          + " to " + std::to_string(end)
                                          + " has no end with step "
                                          + std::to_string(step));
  const double count =
    std::is_integral_v<T>
      ? std::ceil(
        static_cast<double>((static_cast<long double>(end) - start) / step))
      : std::ceil(std::abs(static_cast<double>((end - start) / step)));
  if (!(count <= static_cast<double>(std::numeric_limits<std::int32_t>::max())))
    throw error(errc::invalid_argument,
                "a range of " + std::to_string(count) + " numbers");
  return static_cast<std::int64_t>(count);
}

} // namespace troupe
