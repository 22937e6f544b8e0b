// SPDX-License-Identifier: Apache-2.0
#include <troupe/apps/stop_request.hpp>

#include <troupe/base/threads.hpp>

#include <array>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <ctime>
#include <utility>

namespace troupe::apps {

namespace {

// A signal handler can access only globals.
volatile std::sig_atomic_t signal_arrived = 0;

extern "C" void on_signal(int) {
  signal_arrived = 1;
}

// A handler's frame with the vector registers takes some KiB.
constinit std::array<std::byte, 64 * 1024> handler_stack{};

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

void handle_all() {
  // The second signal ends the process.
  for (int signal : {SIGINT, SIGTERM})
    handle(signal, on_signal, SA_RESETHAND);
  // A terminal that is closed can send this signal twice: its shell sends it
  // too. `nohup` ignores it.
  if (!is_ignored(SIGHUP))
    handle(SIGHUP, on_signal);
}

/// The soft limit of CPU time; RLIM_INFINITY if there is none, or if the
/// process ignores its signal.
rlim_t limit_of_cpu_seconds() noexcept {
  rlimit limit{};
  return ::getrlimit(RLIMIT_CPU, &limit) == 0 && !is_ignored(SIGXCPU)
           ? limit.rlim_cur
           : RLIM_INFINITY;
}

/// CPU time of all threads of this process, in whole seconds.
rlim_t cpu_seconds() noexcept {
  timespec used{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  return static_cast<rlim_t>(used.tv_sec);
}

} // namespace

stop_request::stop_request() : cpu_seconds_(limit_of_cpu_seconds()) {
  stack_t own = {};
  own.ss_sp = handler_stack.data();
  own.ss_size = handler_stack.size();
  sigaltstack(&own, nullptr);
  signal_arrived = 0;
  handle_all();
  if (cpu_seconds_ != RLIM_INFINITY)
    handle(SIGXCPU, SIG_IGN);
}

bool stop_request::stopped() const noexcept {
  return signal_arrived != 0
         || (cpu_seconds_ != RLIM_INFINITY && cpu_seconds() >= cpu_seconds_);
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
