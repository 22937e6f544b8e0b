// SPDX-License-Identifier: Apache-2.0
#include <troupe/comm/shm/pulse.hpp>

#include <algorithm>
#include <cstring>

namespace troupe::comm::shm {

void pulse::beat(std::uint64_t steps, std::string_view doing) noexcept {
  text now{};
  const auto bytes = std::min(doing.size(), sizeof now - 1); // ends with a 0
  std::memcpy(now.data(), doing.data(), bytes);
  const auto count = count_.load(std::memory_order_relaxed);
  count_.store(count + 1, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_release);
  steps_.store(steps, std::memory_order_relaxed);
  for (std::size_t i = 0; i < words; ++i)
    text_[i].store(now[i], std::memory_order_relaxed);
  count_.store(count + 2, std::memory_order_release);
}

pulse::value pulse::read() const {
  // A process that is stopped while it writes leaves an odd count for ever.
  constexpr int tries = 100;
  value found;
  for (int i = 0; i < tries; ++i) {
    const auto before = count_.load(std::memory_order_acquire);
    found.beats = before / 2;
    if (before % 2 != 0)
      continue;
    found.steps = steps_.load(std::memory_order_relaxed);
    text then{};
    for (std::size_t w = 0; w < words; ++w)
      then[w] = text_[w].load(std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_acquire);
    if (count_.load(std::memory_order_relaxed) != before)
      continue;
    const auto* bytes = reinterpret_cast<const char*>(then.data());
    found.doing.assign(bytes, ::strnlen(bytes, sizeof then - 1));
    break;
  }
  return found;
}

} // namespace troupe::comm::shm
