// SPDX-License-Identifier: Apache-2.0
#include <troupe/apps/stop_request.hpp>

#include <troupe/apps/quiet_thread.hpp>
#include <troupe/base/stacks/signal_stack.hpp>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string_view>
#include <tuple>
#include <utility>

#include <poll.h>
#include <sys/resource.h>
#include <unistd.h>

namespace troupe::apps {

namespace {

// A signal handler can access only globals. Relaxed: no data depends on it.
constinit std::atomic<bool> is_requested{false};
static_assert(std::atomic<bool>::is_always_lock_free); // as a handler needs

extern "C" void ask_for_stop(int) {
  is_requested.store(true, std::memory_order_relaxed);
}

/// The same, but ends the process as usual if a stop has been requested before.
extern "C" void ask_for_stop_once(int signal) {
  if (!is_requested.exchange(true, std::memory_order_relaxed))
    return;
  std::signal(signal, SIG_DFL);
  std::raise(signal); // takes effect when this handler returns
}

constexpr std::chrono::milliseconds between_looks{50};

void handle(int signal, void (*handler)(int)) {
  struct sigaction action = {};
  action.sa_handler = handler;
  action.sa_flags = SA_ONSTACK | SA_RESTART;
  sigaction(signal, &action, nullptr);
}

bool is_ignored(int signal) {
  struct sigaction action = {};
  sigaction(signal, nullptr, &action);
  return action.sa_handler == SIG_IGN;
}

void handle_all() {
  for (int signal : {SIGINT, SIGTERM})
    handle(signal, ask_for_stop_once);
  // A terminal that is closed can send this signal twice: its shell sends it
  // too. `nohup` ignores it.
  if (!is_ignored(SIGHUP))
    handle(SIGHUP, ask_for_stop);
}

/// The soft limit of CPU time. When the threads of a process have together used
/// it, Linux adds a second to it and sends SIGXCPU, again and again. Linux
/// counts ticks for it, which can be more time than the process's clock says.
/// The limit is over if the clock reaches it, or if it grows by a few seconds.
class cpu_time_limit {
public:
  bool is_over() noexcept {
    constexpr rlim_t few = 4; // several, if the last look was long ago
    timespec used{};
    ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    const auto before = std::exchange(seconds_, current());
    return before != RLIM_INFINITY
           && (static_cast<rlim_t>(used.tv_sec) >= before
               || (seconds_ > before && seconds_ - before <= few));
  }

private:
  static rlim_t current() noexcept {
    rlimit limit{};
    return ::getrlimit(RLIMIT_CPU, &limit) == 0 ? limit.rlim_cur
                                                : RLIM_INFINITY;
  }

  rlim_t seconds_ = current();
};

/// Writes, unless nobody reads what was written before. Not by `stderr`:
/// another thread may hold its lock, in a write that waits for a reader.
void tell_if_read(std::string_view text) noexcept {
  pollfd out{STDERR_FILENO, POLLOUT, 0};
  if (::poll(&out, 1, 0) == 1)
    std::ignore = ::write(STDERR_FILENO, text.data(), text.size());
}

/// Ends the process. Waits for no thread and no reader, and runs no destructor.
[[noreturn]] void end_process() {
  if (::isatty(STDERR_FILENO) == 1)
    tell_if_read("\r\033[K"); // clears a progress bar
  tell_if_read("troupe: stopped\n");
  pollfd out{STDOUT_FILENO, POLLOUT, 0};
  if (::poll(&out, 1, 0) == 1 && ::ftrylockfile(stdout) == 0)
    std::fflush(stdout); // the complete lines so far
  std::_Exit(1);
}

} // namespace

stop_request::stop_request() {
  have_signal_stack();
  is_requested.store(false, std::memory_order_relaxed);
  handle_all();
  handle(SIGXCPU, SIG_IGN);
}

bool stop_request::stopped() const noexcept {
  return is_requested.load(std::memory_order_relaxed);
}

stop_watch::stop_watch(const stop_request& request, std::function<void()> act)
  : thread_(quiet_thread("troupe-stop", [this, &request, act = std::move(act)] {
      watch(request, act);
    })) {
  std::unique_lock held{mutex_};
  ended_.wait(held, [this] { return has_begun_; });
}

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
  cpu_time_limit limit;
  std::unique_lock held{mutex_};
  has_begun_ = true;
  ended_.notify_one();
  while (!ended_.wait_for(held, between_looks, [this] { return end_; })) {
    if (limit.is_over())
      is_requested.store(true, std::memory_order_relaxed);
    if (request.stopped())
      act();
  }
}

std::function<void()> end_at_once() {
  return end_process;
}

std::function<void()> end_if_it_takes(std::chrono::milliseconds patience) {
  return [looks = patience / between_looks]() mutable {
    if (looks-- <= 0)
      end_process();
  };
}

} // namespace troupe::apps
