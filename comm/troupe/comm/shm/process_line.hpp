// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/kernels/memory/size_class.hpp>

#include <atomic>
#include <cstdint>

namespace troupe::comm::shm {

/// How the others wake a process.
struct alignas(cache_line) process_line {
  /// A futex: counts the changes of which the process was notified, in steps of
  /// two. Odd while the process's own thread sleeps, and after it was woken for
  /// nothing, until the next notice. Both are in one word. With a word for
  /// each, a notifier that has counted up and is late to see whether the thread
  /// sleeps would take the notice that is meant for the next one.
  std::atomic<std::uint32_t> bell{0};
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
/// that nobody looks. The notifier then changes the bell in one step, and wakes
/// the thread if it was odd; a thread falls asleep by making it odd, which
/// fails if the bell has changed. A wake-up can come late, but then it wakes a
/// thread for nothing.
void ring(process_line& process) noexcept;
/// Sleeps until the bell no longer has the value `heard`, which was read by the
/// same thread; or returns earlier. Several threads of the process may sleep: a
/// notice wakes all.
void sleep(process_line& own, std::uint32_t heard) noexcept;
///@}

} // namespace troupe::comm::shm
