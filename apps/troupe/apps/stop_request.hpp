// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <signal.h>

#include <condition_variable>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

namespace troupe::apps {

/// While it exists, Ctrl-C (SIGINT), SIGTERM and the closing of the terminal
/// (SIGHUP) set a flag. A long loop checks the flag between steps, a
/// `stop_watch` checks it within steps. A second SIGINT or SIGTERM ends the
/// process as usual. A process that ignores SIGHUP keeps doing so.
///
/// The handler has its own stack. Library kernels keep values below the stack
/// pointer, farther than the system leaves room for, and the thread that waits
/// for a step runs kernels too. With a handler on its stack, 5 of 100 runs
/// crashed.
///
/// Thread rule: one object at a time, made and destroyed by the process's first
/// thread, which receives the signals.
class stop_request {
public:
  stop_request();
  ~stop_request();
  stop_request(const stop_request&) = delete;
  stop_request& operator=(const stop_request&) = delete;

  bool stopped() const noexcept;

private:
  std::unique_ptr<std::byte[]> stack_;
  stack_t stack_before_ = {};
};

/// Once a stop is requested, calls `act` again and again on a thread of its own
/// until the object is destroyed. One call would not reach a step that begins
/// after it.
class stop_watch {
public:
  stop_watch(const stop_request& request, std::function<void()> act);
  ~stop_watch();
  stop_watch(const stop_watch&) = delete;
  stop_watch& operator=(const stop_watch&) = delete;

private:
  void watch(const stop_request& request, const std::function<void()>& act);

  std::mutex mutex_;
  std::condition_variable ended_;
  bool end_ = false;
  std::thread thread_;
};

} // namespace troupe::apps
