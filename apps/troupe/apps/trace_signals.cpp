// SPDX-License-Identifier: Apache-2.0
#include <troupe/apps/trace_signals.hpp>

#include <troupe/apps/quiet_thread.hpp>
#include <troupe/base/error.hpp>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <string>
#include <utility>

#include <fcntl.h>
#include <unistd.h>

namespace troupe::apps {

namespace {

// A signal handler can access only globals. Relaxed: the descriptor is open
// before it is stored, and a handler on the same thread sees that.
constinit std::atomic<int> trace_pipe{-1};
static_assert(std::atomic<int>::is_always_lock_free); // as a handler needs

/// A full pipe loses a signal. It holds thousands.
extern "C" void pass_on(int signal) {
  const int error_number = errno;
  const auto pipe = trace_pipe.load(std::memory_order_relaxed);
  const auto number = static_cast<unsigned char>(signal);
  if (pipe >= 0)
    (void)!::write(pipe, &number, sizeof number);
  errno = error_number;
}

constexpr unsigned char end_of_thread = 0; // no signal has this number

} // namespace

trace_signals::trace_signals(std::function<void(int)> act) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0)
    throw error(errc::io_failure,
                std::string("no pipe for signals: ") + std::strerror(errno));
  read_ = descriptor{ends[0]};
  write_ = descriptor{ends[1]};
  ::fcntl(write_.get(), F_SETFL, O_NONBLOCK); // a handler must not wait
  thread_ = quiet_thread("troupe-signals",
                         [this, act = std::move(act)] { serve(act); });
  trace_pipe.store(write_.get(), std::memory_order_relaxed);
  struct sigaction action = {};
  action.sa_handler = pass_on;
  action.sa_flags = SA_ONSTACK | SA_RESTART;
  for (int signal : {SIGUSR1, SIGUSR2})
    sigaction(signal, &action, nullptr);
}

trace_signals::~trace_signals() {
  trace_pipe.store(-1, std::memory_order_relaxed);
  // The end must get into the pipe, also if signals have filled it.
  ::fcntl(write_.get(), F_SETFL, 0);
  (void)!::write(write_.get(), &end_of_thread, sizeof end_of_thread);
  thread_.join();
}

void trace_signals::serve(const std::function<void(int)>& act) {
  for (;;) {
    unsigned char number = end_of_thread;
    const auto got = ::read(read_.get(), &number, sizeof number);
    if (got < 0 && errno == EINTR)
      continue;
    if (got != sizeof number || number == end_of_thread)
      return;
    act(number);
  }
}

} // namespace troupe::apps
