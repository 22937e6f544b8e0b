// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

namespace troupe::apps {

/// From its construction on, Ctrl-C (SIGINT), SIGTERM and the closing of the
/// terminal (SIGHUP) set a flag. A long loop checks the flag between steps, a
/// `stop_watch` checks it within steps. If the flag is set, SIGINT and SIGTERM
/// end the process as usual. A process that ignores SIGHUP keeps doing so.
///
/// That holds until the process ends, also without the object: a signal that
/// arrives when all is done must not change how the process ends.
///
/// SIGXCPU is ignored: the system sends it to the thread that exceeds the soft
/// limit of CPU time (`ulimit -S -t`), which can be within a kernel. A
/// `stop_watch` looks at the limit and sets the flag instead.
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
};

/// Once a stop is requested, calls `act` again and again on a thread of its own
/// until the object is destroyed. One call would not reach a step that begins
/// after it. The thread has started when the constructor returns, and allocates
/// no memory while it waits: a process that is forked from this one must not
/// find the allocator locked.
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
  bool has_begun_ = false;
  bool end_ = false;
  std::thread thread_;
};

/// How long a stop may take in the command.
inline constexpr std::chrono::milliseconds patience_for_stops{8000};

/// For a `stop_watch`: ends the process with one line and exit code 1. It waits
/// for no thread and runs no destructor. What was printed to standard output is
/// flushed.
std::function<void()> end_at_once();
/// The same if a stop takes longer than `patience`, because the process is busy
/// with something that cannot be cancelled.
std::function<void()> end_if_it_takes(std::chrono::milliseconds patience);

} // namespace troupe::apps
