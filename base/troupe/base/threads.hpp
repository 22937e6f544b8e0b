// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <system_error>
#include <thread>
#include <utility>

#include <sys/types.h>

namespace troupe {

/// The calling thread as the system numbers it (`gettid`). Asks the system only
/// once per thread; knows of `fork`. Any thread, but not in a signal handler.
pid_t this_thread_number() noexcept;

/// Starts `count` threads that exist at the same time, and ends them. Returns
/// 0, or the system's error number if one could not be started. The system has
/// forgotten the threads when this returns, so that others can take their
/// places. Needs nothing that the C++ library initializes. Any thread.
int try_threads(std::size_t count) noexcept;

/// Throws error(kernel_failure) unless `count` more threads can be started now.
/// Called before a library that cannot cope with a thread that does not start:
/// CAF, OpenMP and oneTBB then end the process.
void require_threads(std::size_t count);

/// Throws error(kernel_failure) that says which limits can be the reason why
/// `count` threads did not start.
/// @param code the system's error number
[[noreturn]] void fail_to_start_threads(std::size_t count, int code);

/// Gives a thread a name for tools that list threads (`top -H`, gdb, perf). Of
/// more than 15 characters the first 15 count.
void name_thread(std::thread::native_handle_type thread,
                 const char* name) noexcept;

/// Starts a thread with this name (see `name_thread`). Throws like
/// `fail_to_start_threads` if the system refuses.
template <class Thread = std::thread, class... Arguments>
Thread start_thread(const char* name, Arguments&&... arguments) {
  try {
    Thread thread{std::forward<Arguments>(arguments)...};
    name_thread(thread.native_handle(), name);
    return thread;
  } catch (const std::system_error& refusal) {
    fail_to_start_threads(1, refusal.code().value());
  }
}

} // namespace troupe
