// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/comm/shm/process_line.hpp>

#include <atomic>
#include <functional>
#include <thread>

namespace troupe::comm::shm {

/// A process's own thread: sleeps until the process is notified, then works.
/// Works at least once after each notice, so what a notifier did before it rang
/// is seen.
class bell_thread {
public:
  /// Throws as `start_thread`.
  /// @param name of the thread
  /// @param line of this process; outlives the object. No bell has rung yet, or
  /// the thread works at once.
  /// @param work is called by the thread only; must not throw
  bell_thread(const char* name, process_line& line, std::function<void()> work);
  /// Waits until the thread has ended. No other thread looks any more.
  ~bell_thread();
  bell_thread(const bell_thread&) = delete;
  bell_thread& operator=(const bell_thread&) = delete;

private:
  void run();

  process_line& line_;
  std::function<void()> work_;
  /// Stored with release before the bell is rung, loaded with acquire after the
  /// bell was read: see `run`.
  std::atomic<bool> ends_{false};
  std::thread thread_; // uses all members above
};

} // namespace troupe::comm::shm
