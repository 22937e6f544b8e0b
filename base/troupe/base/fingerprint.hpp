// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>

namespace troupe {

/// A hash of 64 bits that tells values apart; not against forgery. FNV-1a
/// (Fowler, Noll and Vo) over words of eight bytes, mixed after each; the last
/// word of each `add` is padded with zeros.
class fingerprint {
public:
  void add(const void* bytes, std::size_t count) noexcept {
    const auto* from = static_cast<const char*>(bytes);
    for (std::size_t at = 0; at < count; at += sizeof(std::uint64_t)) {
      std::uint64_t word = 0;
      std::memcpy(&word, from + at, std::min(sizeof word, count - at));
      hash_ = (hash_ ^ word) * 0x100000001b3u;
      hash_ ^= hash_ >> 29; // mixes high bits into low ones
    }
  }
  void add(std::string_view text) noexcept { add(text.data(), text.size()); }

  std::uint64_t value() const noexcept { return hash_; }
  /// 16 hexadecimal digits.
  std::string text() const {
    char figures[17];
    std::snprintf(figures, sizeof figures, "%016llx",
                  static_cast<unsigned long long>(hash_));
    return figures;
  }

private:
  std::uint64_t hash_ = 0xcbf29ce484222325u;
};

} // namespace troupe
