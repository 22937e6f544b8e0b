// SPDX-License-Identifier: Apache-2.0
#include <troupe/apps/results/trace_requests.hpp>

#include <csignal>

namespace troupe::apps {

trace_requests::trace_requests()
  : signals_([this](int signal) { serve(signal); }) {}

void trace_requests::serve(int signal) noexcept {
  std::lock_guard guard{mutex_};
  if (exe_ && signal == SIGUSR1)
    dumps_.dump(*exe_, flight_dumps::cause::request);
}

trace_requests::subject::subject(trace_requests& requests, executor& exe)
  : requests_(requests) {
  std::lock_guard guard{requests_.mutex_};
  requests_.exe_ = &exe;
}

trace_requests::subject::~subject() {
  std::lock_guard guard{requests_.mutex_};
  requests_.exe_ = nullptr;
}

} // namespace troupe::apps
