// SPDX-License-Identifier: Apache-2.0
#include <troupe/apps/stop_request.hpp>

#include <troupe/base/threads.hpp>

#include <chrono>
#include <csignal>
#include <cstddef>
#include <memory>
#include <utility>

namespace troupe::apps {

namespace {

// A signal handler can access only globals.
volatile std::sig_atomic_t signal_arrived = 0;

extern "C" void on_signal(int) {
  signal_arrived = 1;
}

// A handler's frame with the vector registers takes some KiB.
constexpr std::size_t stack_bytes = 64 * 1024;

void handle(int signal, void (*handler)(int), unsigned flags = 0) {
  struct sigaction action = {};
  action.sa_handler = handler;
  action.sa_flags = SA_ONSTACK | SA_RESTART | static_cast<int>(flags);
  sigaction(signal, &action, nullptr);
}

bool is_ignored(int signal) {
  struct sigaction action = {};
  sigaction(signal, nullptr, &action);
  return action.sa_handler == SIG_IGN;
}

void handle_all(void (*handler)(int)) {
  // The second signal ends the process.
  for (int signal : {SIGINT, SIGTERM})
    handle(signal, handler, SA_RESETHAND);
  // A terminal that is closed can send this signal twice: its shell sends it
  // too. `nohup` ignores it.
  if (!is_ignored(SIGHUP))
    handle(SIGHUP, handler);
}

} // namespace

stop_request::stop_request()
  : stack_(std::make_unique<std::byte[]>(stack_bytes)) {
  stack_t own = {};
  own.ss_sp = stack_.get();
  own.ss_size = stack_bytes;
  sigaltstack(&own, &stack_before_);
  signal_arrived = 0;
  handle_all(on_signal);
}

stop_request::~stop_request() {
  handle_all(SIG_DFL);
  sigaltstack(&stack_before_, nullptr);
}

bool stop_request::stopped() const noexcept {
  return signal_arrived != 0;
}

namespace {

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

/// Starts a thread that receives no signals.
template <class Function>
std::thread quiet_thread(Function function) {
  const blocked_signals while_it_starts;
  return start_thread(std::move(function));
}

} // namespace

stop_watch::stop_watch(const stop_request& request, std::function<void()> act)
  : thread_(quiet_thread(
    [this, &request, act = std::move(act)] { watch(request, act); })) {}

stop_watch::~stop_watch() {
  {
    std::lock_guard guard{mutex_};
    end_ = true;
  }
  ended_.notify_one();
  thread_.join();
}

// Polls, because a signal handler cannot wake a thread.
void stop_watch::watch(const stop_request& request,
                       const std::function<void()>& act) {
  constexpr std::chrono::milliseconds between_looks{50};
  std::unique_lock held{mutex_};
  while (!ended_.wait_for(held, between_looks, [this] { return end_; }))
    if (request.stopped())
      act();
}

} // namespace troupe::apps
