// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace troupe::fuzz {

/// Takes an input apart, for targets whose inputs are lists of actions. Where
/// the input has ended, there are zeros.
class input_bytes {
public:
  explicit input_bytes(std::string_view bytes) : rest_(bytes) {}

  bool is_empty() const { return rest_.empty(); }

  std::uint8_t byte() {
    const auto taken = take(1);
    return taken.empty() ? 0 : static_cast<std::uint8_t>(taken.front());
  }
  /// Less than 65536; the less significant byte comes first.
  std::size_t number() {
    const std::size_t low = byte();
    return low | std::size_t{byte()} << 8;
  }
  /// Fewer if there are no more.
  std::string_view take(std::size_t bytes) {
    const auto taken = rest_.substr(0, bytes);
    rest_.remove_prefix(taken.size());
    return taken;
  }
  std::string_view rest() { return take(rest_.size()); }

private:
  std::string_view rest_;
};

} // namespace troupe::fuzz
