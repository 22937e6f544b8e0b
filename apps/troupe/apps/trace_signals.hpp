// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/base/files/descriptor.hpp>

#include <functional>
#include <thread>

namespace troupe::apps {

/// From its construction on, the process catches SIGUSR1 and SIGUSR2. Until its
/// destruction, each of them calls a function on a thread of its own, one call
/// at a time. Later ones do nothing.
///
/// The handlers run on the stack that `stop_request` makes for handlers, and
/// for the reason given there.
///
/// Thread rule: one object at a time, made by the process's first thread after
/// a `stop_request`. Throws error(io_failure) if there is no pipe.
class trace_signals {
public:
  /// @param act takes the number of the signal; must not throw
  explicit trace_signals(std::function<void(int)> act);
  /// Waits for the call of `act` that is under way.
  ~trace_signals();
  trace_signals(const trace_signals&) = delete;
  trace_signals& operator=(const trace_signals&) = delete;

private:
  void serve(const std::function<void(int)>& act);

  descriptor read_;
  descriptor write_;
  std::thread thread_;
};

} // namespace troupe::apps
