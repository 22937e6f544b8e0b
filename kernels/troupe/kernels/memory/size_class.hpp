// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>

namespace troupe {

/// Size classes in cache lines: 1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20,
/// ...; four per power of two.
struct size_class {
  std::size_t index; ///< from 0
  std::size_t bytes; ///< the largest size in the class
};

inline constexpr std::size_t cache_line = 64;

/// Larger requests are refused, so that the arithmetic cannot overflow.
inline constexpr std::size_t max_request = std::size_t{1} << 60;

/// The class of a size of at most `max_request` bytes.
constexpr size_class class_of(std::size_t bytes) noexcept {
  auto lines = std::max<std::size_t>(1, (bytes + cache_line - 1) / cache_line);
  if (lines <= 4)
    return {lines - 1, lines * cache_line};
  auto exponent = static_cast<std::size_t>(std::bit_width(lines - 1)) - 3;
  auto steps = ((lines - 1) >> exponent) + 1; // 5 to 8
  return {4 * exponent + steps - 1, (steps << exponent) * cache_line};
}

inline constexpr std::size_t size_classes = class_of(max_request).index + 1;

} // namespace troupe
