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

/// Turns Ctrl-C (SIGINT) and SIGTERM into a flag that a long loop looks at
/// between steps, and a `stop_watch` within them, for as long as the object
/// lives. A second signal ends the process as usual.
///
/// The handler has a stack of its own: kernels of the libraries keep values
/// below the stack pointer, farther than the system leaves room for, and the
/// thread that waits for a step runs kernels too. A handler on its stack made 5
/// of 100 runs crash.
///
/// Thread rule: one object at a time, made and destroyed by the process's first
/// thread, which signals come to.
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

/// Calls `act`, on a thread of its own, again and again from when `request` was
/// made until the object is gone: a step that began meanwhile must hear it,
/// too.
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
