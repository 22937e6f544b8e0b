// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/resource.h>

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

namespace troupe::apps {

/// From its construction on, Ctrl-C (SIGINT), SIGTERM and the closing of the
/// terminal (SIGHUP) set a flag. A long loop checks the flag between steps, a
/// `stop_watch` checks it within steps. A second SIGINT or SIGTERM ends the
/// process as usual. A process that ignores SIGHUP keeps doing so.
///
/// That holds until the process ends, also without the object: a signal that
/// arrives when all is done must not change how the process ends.
///
/// A soft limit of CPU time (`ulimit -S -t`) asks for a stop, too. Its signal,
/// SIGXCPU, is ignored: the system sends it to the thread that exceeds the
/// limit, which can be within a kernel.
///
/// The handler has its own stack. Library kernels keep values below the stack
/// pointer, farther than the system leaves room for, and the thread that waits
/// for a step runs kernels too. With a handler on its stack, 5 of 100 runs
/// crashed.
///
/// Thread rule: one object at a time, made by the process's first thread, which
/// receives the signals.
class stop_request {
public:
  stop_request();
  stop_request(const stop_request&) = delete;
  stop_request& operator=(const stop_request&) = delete;

  bool stopped() const noexcept;

private:
  rlim_t cpu_seconds_; ///< the limit of CPU time; RLIM_INFINITY if none
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
