// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/kernels/memory/size_class.hpp>

#include <atomic>
#include <cstdint>

namespace troupe::comm::shm {

/// How the others wake a process.
struct alignas(cache_line) process_line {
  /// A futex: counts the changes of which the process was notified.
  std::atomic<std::uint32_t> bell{0};
  /// Set while the process's own thread sleeps.
  std::atomic<std::uint32_t> asleep{0};
  /// Number of threads that call `progress` all the time. Others read it after
  /// each change, so nothing else is in its line.
  alignas(cache_line) std::atomic<std::uint32_t> looking{0};
};

///@{
/// Notifies a process of changes, unless it has a thread that looks. Called
/// after a seq_cst fence that follows the changes.
///
/// Neither side can miss the other. A thread that stops looking says so with
/// seq_cst and then looks once more: it sees the changes, or the notifier sees
/// that nobody looks. The notifier then counts the bell up before it reads
/// `asleep`; a thread that falls asleep says so before it reads the bell. All
/// of these are seq_cst.
void ring(process_line& process) noexcept;
/// Sleeps until the bell no longer has the value `heard`.
void sleep(process_line& own, std::uint32_t heard) noexcept;
///@}

} // namespace troupe::comm::shm
