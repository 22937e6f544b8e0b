// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/base/threads.hpp>

#include <csignal>
#include <thread>
#include <utility>

namespace troupe::apps {

/// While it exists, this thread receives no signals. Threads started meanwhile
/// never receive any.
class blocked_signals {
public:
  blocked_signals() {
    sigset_t all = {};
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~blocked_signals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  blocked_signals(const blocked_signals&) = delete;
  blocked_signals& operator=(const blocked_signals&) = delete;

private:
  sigset_t before_ = {};
};

/// Starts a thread with this name (`name_thread`) that receives no signals.
template <class Function>
std::thread quiet_thread(const char* name, Function function) {
  const blocked_signals while_it_starts;
  return start_thread(name, std::move(function));
}

} // namespace troupe::apps
