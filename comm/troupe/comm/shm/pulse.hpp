// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/kernels/memory/size_class.hpp>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace troupe::comm::shm {

/// What a process tells the others about itself from time to time. One thread
/// of the process writes it, threads of all others read it.
///
/// Memory order: a sequence lock. The count is odd while the text changes. A
/// reader takes the words of the text with relaxed loads between two equal even
/// counts. The fences order these loads before the second load of the count,
/// and the writer's first store of the count before its stores of the text.
class alignas(cache_line) pulse {
public:
  void beat(std::uint64_t steps, std::string_view doing) noexcept;

  struct value {
    std::uint64_t beats = 0;
    std::uint64_t steps = 0;
    std::string doing;
  };
  value read() const;

private:
  static constexpr std::size_t words = 24;
  using text = std::array<std::uint64_t, words>;

  std::atomic<std::uint64_t> count_{0}; // two per beat
  std::atomic<std::uint64_t> steps_{0};
  std::array<std::atomic<std::uint64_t>, words> text_{};
};

} // namespace troupe::comm::shm
