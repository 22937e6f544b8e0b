// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <csignal>
#include <ctime>

namespace troupe::comm {

/// While it lives, a write of this thread to a closed connection fails, but
/// does not end the process. For libraries that write without MSG_NOSIGNAL.
/// Threads that are started meanwhile never get the signal.
class no_sigpipe {
public:
  no_sigpipe() noexcept {
    sigset_t pending;
    sigemptyset(&pipe_);
    sigaddset(&pipe_, SIGPIPE);
    sigpending(&pending);
    was_pending_ = sigismember(&pending, SIGPIPE) == 1;
    pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
  }
  ~no_sigpipe() {
    const timespec now{};
    if (sigismember(&before_, SIGPIPE) == 1)
      return;
    if (!was_pending_) // takes the signal of a write
      sigtimedwait(&pipe_, nullptr, &now);
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  no_sigpipe(const no_sigpipe&) = delete;
  no_sigpipe& operator=(const no_sigpipe&) = delete;

private:
  sigset_t pipe_, before_;
  bool was_pending_;
};

} // namespace troupe::comm
