// SPDX-License-Identifier: Apache-2.0
#include <troupe/apps/launch/signal_pipe.hpp>

#include <troupe/base/error.hpp>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstring>

#include <fcntl.h>
#include <unistd.h>

namespace troupe::apps {

namespace {

constexpr std::array handled{SIGINT,  SIGTERM, SIGHUP, SIGQUIT,
                             SIGCHLD, SIGUSR1, SIGUSR2};

/// What the caller of the command ignores stays ignored, but for signals that
/// the launcher needs, or that `main` ignores.
bool may_stay_ignored(int signal) {
  return signal != SIGCHLD && signal != SIGUSR1 && signal != SIGUSR2;
}

// A signal handler can access only globals.
constinit int signal_pipe_end = -1;
std::array<struct sigaction, handled.size()> before{};

/// A full pipe loses a signal. It holds thousands, and a lost SIGCHLD is made
/// up for by the next look at all children.
extern "C" void write_to_pipe(int number, siginfo_t* info, void*) {
  const int error_number = errno;
  const received_signal record{number, info->si_pid};
  (void)!::write(signal_pipe_end, &record, sizeof record);
  errno = error_number;
}

} // namespace

signal_pipe::signal_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0)
    throw error(errc::io_failure,
                std::string("no pipe for signals: ") + std::strerror(errno));
  read_ = descriptor{ends[0]};
  write_ = descriptor{ends[1]};
  signal_pipe_end = ends[1];
  struct sigaction action = {};
  action.sa_sigaction = write_to_pipe;
  action.sa_flags = SA_SIGINFO | SA_NOCLDSTOP;
  sigfillset(&action.sa_mask); // records stay in their order
  for (std::size_t i = 0; i < handled.size(); ++i) {
    sigaction(handled[i], nullptr, &before[i]);
    if (before[i].sa_handler != SIG_IGN || !may_stay_ignored(handled[i]))
      sigaction(handled[i], &action, nullptr);
  }
}

signal_pipe::~signal_pipe() {
  for (std::size_t i = 0; i < handled.size(); ++i)
    sigaction(handled[i], &before[i], nullptr);
  signal_pipe_end = -1;
}

std::optional<received_signal> signal_pipe::next() {
  received_signal record;
  return ::read(read_.get(), &record, sizeof record) == sizeof record
           ? std::optional(record)
           : std::nullopt;
}

std::string signal_name(int signal) {
  const char* name = ::sigabbrev_np(signal);
  return name ? std::string("SIG") + name : "signal " + std::to_string(signal);
}

} // namespace troupe::apps
