// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/comm/communicator.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <thread>

namespace comm_test {

/// Waits until the rank's process has seen so many beats of each other process.
/// False if they do not come.
inline bool sees_beats(const troupe::comm::communicator& at,
                       std::uint64_t beats) {
  using clock = std::chrono::steady_clock;
  const auto sees_all = [&] {
    return std::ranges::all_of(
      at.peers(), [&](auto& other) { return other.beats >= beats; });
  };
  for (const auto end = clock::now() + std::chrono::seconds{10};
       clock::now() < end;) {
    if (sees_all())
      return true;
    std::this_thread::sleep_for(std::chrono::microseconds{100});
  }
  return false;
}

} // namespace comm_test
