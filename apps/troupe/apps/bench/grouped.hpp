// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

namespace troupe::apps {

/// Lists of values by a dense key, stored contiguously in one array.
template <class T>
class grouped {
public:
  using entry = std::pair<std::uint32_t, T>; ///< key, value

  /// @param entries keys must be less than `keys`; the order within a key is
  /// kept
  grouped(std::size_t keys, std::span<const entry> entries)
    : first_(keys + 1), values_(entries.size()) {
    for (auto& [key, value] : entries)
      ++first_[key + 1];
    std::partial_sum(first_.begin(), first_.end(), first_.begin());
    auto next = first_;
    for (auto& [key, value] : entries)
      values_[next[key]++] = value;
  }

  std::span<const T> operator[](std::uint32_t key) const {
    return {values_.data() + first_[key], values_.data() + first_[key + 1]};
  }

private:
  std::vector<std::uint32_t> first_; // by key, with an extra entry at the end
  std::vector<T> values_;
};

} // namespace troupe::apps
