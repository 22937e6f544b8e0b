// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/actors/executor.hpp>
#include <troupe/apps/results/flight_dumps.hpp>
#include <troupe/apps/trace/trace_request.hpp>
#include <troupe/apps/trace_signals.hpp>
#include <troupe/base/stacks/thread_stacks.hpp>

#include <memory>
#include <mutex>
#include <optional>
#include <string>

namespace troupe::apps {

/// Does what signals ask of a run. SIGUSR1 dumps its flight recorder. SIGUSR2
/// does what the `trace_desk` says; without a request there, it begins a trace,
/// or ends the one that is being written. A line on stderr says what was done.
///
/// Thread rule: as `trace_signals`.
class trace_requests {
public:
  trace_requests();

  /// The dumps of this run. Any thread.
  flight_dumps& dumps() noexcept { return dumps_; }
  /// For the executors of this run: takes the call stacks of busy workers for
  /// dumps. Null, after a warning, if the process cannot.
  const std::shared_ptr<thread_stacks>& stacks() const noexcept {
    return stacks_;
  }

  /// The trace that somebody asked for and that has ended with the latest
  /// subject, if there was one. Tells it once.
  std::optional<std::string> take_cut_trace();

  /// While it lives, requests are about this executor.
  class subject {
  public:
    /// @param usual what a trace is like if the request does not say; its file
    ///   does not count
    subject(trace_requests& requests, executor& exe, trace_options usual);
    ~subject();
    subject(const subject&) = delete;
    subject& operator=(const subject&) = delete;

  private:
    trace_requests& requests_;
  };

private:
  void serve(int signal) noexcept;
  std::string serve(const std::optional<trace_request>& request);
  std::string start(const trace_request& request);

  flight_dumps dumps_;
  std::shared_ptr<thread_stacks> stacks_;
  trace_desk desk_;
  std::mutex mutex_; // held while the executor is used
  executor* exe_ = nullptr;
  trace_options usual_;
  std::optional<std::string> requested_; // the file that is being written
  std::optional<std::string> cut_;
  trace_signals signals_; // uses all members above
};

} // namespace troupe::apps
