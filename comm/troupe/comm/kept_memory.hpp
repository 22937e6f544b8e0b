// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <mutex>
#include <utility>

namespace troupe::comm {

/// Keeps handles on memory until the process ends: another process may still
/// read or write it, so it must not be used again. Any thread.
template <class Handles>
void keep_for_ever(Handles memory) {
  static std::mutex mutex;
  static auto& kept = *new std::deque<Handles>; // not destroyed at exit
  std::lock_guard guard{mutex};
  kept.push_back(std::move(memory));
}

} // namespace troupe::comm
