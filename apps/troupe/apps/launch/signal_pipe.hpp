// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/base/files/descriptor.hpp>

#include <optional>
#include <string>

#include <sys/types.h>

namespace troupe::apps {

/// A signal that this process received.
struct received_signal {
  int number = 0;
  pid_t sender = 0; ///< of SIGCHLD: the child that ended
};

/// From its construction on, SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGCHLD, SIGUSR1
/// and SIGUSR2 are written to a pipe, in the order in which they arrive. Of the
/// first four, those that the process ignores stay ignored. Its destructor
/// restores what was there before.
///
/// A signalfd would need signals that all threads block, but libraries start
/// threads before main().
///
/// Thread rule: one object at a time. Throws error(io_failure) if there is no
/// pipe.
class signal_pipe {
public:
  signal_pipe();
  ~signal_pipe();
  signal_pipe(const signal_pipe&) = delete;
  signal_pipe& operator=(const signal_pipe&) = delete;

  /// Is readable if a signal has arrived.
  int fd() const noexcept { return read_.get(); }
  /// The next signal. Does not wait.
  std::optional<received_signal> next();

private:
  descriptor read_;
  descriptor write_;
};

/// "SIGINT".
std::string signal_name(int signal);

} // namespace troupe::apps
