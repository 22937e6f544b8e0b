// SPDX-License-Identifier: Apache-2.0
#include <troupe/apps/stop_request.hpp>

#include <csignal>
#include <cstddef>
#include <memory>

namespace troupe::apps {

namespace {

// A signal handler can reach nothing but a global.
volatile std::sig_atomic_t signal_arrived = 0;

extern "C" void on_signal(int) {
  signal_arrived = 1;
}

// A handler's frame with the vector registers takes some KiB.
constexpr std::size_t stack_bytes = 64 * 1024;

void handle(int signal, void (*handler)(int)) {
  struct sigaction action = {};
  action.sa_handler = handler;
  // The second signal ends the process.
  action.sa_flags = SA_ONSTACK | SA_RESTART | static_cast<int>(SA_RESETHAND);
  sigaction(signal, &action, nullptr);
}

} // namespace

stop_request::stop_request()
  : stack_(std::make_unique<std::byte[]>(stack_bytes)) {
  stack_t own = {};
  own.ss_sp = stack_.get();
  own.ss_size = stack_bytes;
  sigaltstack(&own, &stack_before_);
  signal_arrived = 0;
  handle(SIGINT, on_signal);
  handle(SIGTERM, on_signal);
}

stop_request::~stop_request() {
  handle(SIGINT, SIG_DFL);
  handle(SIGTERM, SIG_DFL);
  sigaltstack(&stack_before_, nullptr);
}

bool stop_request::stopped() const noexcept {
  return signal_arrived != 0;
}

} // namespace troupe::apps
