// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/actors/executor.hpp>
#include <troupe/apps/results/flight_dumps.hpp>
#include <troupe/apps/trace_signals.hpp>

#include <mutex>

namespace troupe::apps {

/// Does what signals ask of a run: SIGUSR1 dumps its flight recorder.
///
/// Thread rule: as `trace_signals`.
class trace_requests {
public:
  trace_requests();

  /// The dumps of this run. Any thread.
  flight_dumps& dumps() noexcept { return dumps_; }

  /// While it lives, requests are about this executor.
  class subject {
  public:
    subject(trace_requests& requests, executor& exe);
    ~subject();
    subject(const subject&) = delete;
    subject& operator=(const subject&) = delete;

  private:
    trace_requests& requests_;
  };

private:
  void serve(int signal) noexcept;

  flight_dumps dumps_;
  std::mutex mutex_; // held while the executor is used
  executor* exe_ = nullptr;
  trace_signals signals_; // uses all members above
};

} // namespace troupe::apps
