// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <limits>

namespace troupe {

/// A small seeded generator for decisions (shuffles, delays, synthetic data),
/// usable with <algorithm>'s and <random>'s functions.
/// Source: Steele, Lea, Flood, "Fast splittable pseudorandom number
/// generators", OOPSLA 2014.
class splitmix64 {
public:
  using result_type = std::uint64_t;

  explicit splitmix64(std::uint64_t seed) noexcept : state_(seed) {}

  static constexpr result_type min() { return 0; }
  static constexpr result_type max() {
    return std::numeric_limits<result_type>::max();
  }

  result_type operator()() noexcept {
    auto z = (state_ += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }

  /// Uniform in [0, bound), bound > 0 (bias below 2^-32 for small bounds).
  std::uint64_t below(std::uint64_t bound) noexcept {
    return (*this)() % bound;
  }

private:
  std::uint64_t state_;
};

} // namespace troupe
