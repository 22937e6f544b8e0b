// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace troupe::cpu {

/// n / grain, rounded up.
constexpr std::int64_t ceil_div(std::int64_t n, std::int64_t grain) noexcept {
  return (n + grain - 1) / grain;
}

/// [0, extent), cut into parts of one size, a multiple of `grain`. The last
/// part may be smaller.
class even_cut {
public:
  even_cut(std::int64_t extent, std::size_t most_parts,
           std::int64_t grain = 1) noexcept
    : extent_(extent) {
    const auto most = static_cast<std::int64_t>(most_parts);
    const auto grains = ceil_div(extent, grain);
    step_ = std::max<std::int64_t>(1, ceil_div(grains, most)) * grain;
  }

  std::size_t parts() const noexcept {
    return static_cast<std::size_t>(ceil_div(extent_, step_));
  }
  std::int64_t first(std::size_t part) const noexcept {
    return static_cast<std::int64_t>(part) * step_;
  }
  std::int64_t size(std::size_t part) const noexcept {
    return std::min(step_, extent_ - first(part));
  }

private:
  std::int64_t extent_;
  std::int64_t step_;
};

/// The least number of elements per part that makes cutting elementwise work
/// worthwhile, some 20 us.
constexpr std::int64_t least_elements = 1 << 15;

/// The number of parts in which `workers` threads should share work that takes
/// `cost`, if a part must take at least `least`.
inline std::size_t worthwhile_parts(std::size_t workers, std::int64_t cost,
                                    std::int64_t least) noexcept {
  return static_cast<std::size_t>(std::clamp<std::int64_t>(
    cost / least, 1, static_cast<std::int64_t>(workers)));
}

} // namespace troupe::cpu
