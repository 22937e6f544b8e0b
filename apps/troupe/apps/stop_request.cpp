// SPDX-License-Identifier: Apache-2.0
#include <troupe/apps/stop_request.hpp>

#include <csignal>

namespace troupe::apps {

namespace {

// A signal handler can reach nothing but a global.
volatile std::sig_atomic_t signal_arrived = 0;

extern "C" void on_signal(int number) {
  signal_arrived = 1;
  std::signal(number, SIG_DFL);
}

} // namespace

stop_request::stop_request() {
  signal_arrived = 0;
  std::signal(SIGINT, on_signal);
  std::signal(SIGTERM, on_signal);
}

stop_request::~stop_request() {
  std::signal(SIGINT, SIG_DFL);
  std::signal(SIGTERM, SIG_DFL);
}

bool stop_request::stopped() const noexcept {
  return signal_arrived != 0;
}

} // namespace troupe::apps
