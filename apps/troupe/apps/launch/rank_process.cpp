// SPDX-License-Identifier: Apache-2.0
#include <troupe/apps/launch/rank_process.hpp>

#include <troupe/apps/launch/signal_pipe.hpp>
#include <troupe/base/error.hpp>
#include <troupe/base/files/descriptor.hpp>
#include <troupe/base/quoted_name.hpp>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace troupe::apps {

namespace {

/// While it exists, this thread receives no signals: between fork and exec, a
/// child's handler would write to the pipe of its parent.
class signals_held {
public:
  signals_held() {
    sigset_t all = {};
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~signals_held() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  signals_held(const signals_held&) = delete;
  signals_held& operator=(const signals_held&) = delete;

  const sigset_t& before() const { return before_; }

private:
  sigset_t before_ = {};
};

/// For `exec`. Points into `words`.
std::vector<char*> pointers_to(const std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (const auto& word : words)
    pointers.push_back(const_cast<char*>(word.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

/// What a child needs, made before the fork: other threads may hold locks.
struct child_plan {
  std::vector<char*> command;
  std::vector<char*> variables;
  std::array<int, 3> streams;
  std::optional<cpu_set_t> cores;
  sigset_t signals;
  pid_t parent;
  int tell; ///< an error number is written here
};

/// Signals whose handlers are not the system's: the launcher handles or
/// ignores them for its own sake. What the caller of the launcher ignores stays
/// ignored.
void reset_signals() {
  for (int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGCHLD}) {
    struct sigaction action = {};
    sigaction(number, nullptr, &action);
    if (action.sa_handler != SIG_IGN)
      std::signal(number, SIG_DFL);
  }
  for (int number : {SIGPIPE, SIGXFSZ, SIGUSR1, SIGUSR2})
    std::signal(number, SIG_DFL);
}

/// Calls only what a signal handler may call.
[[noreturn]] void become_command(const child_plan& plan) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != plan.parent) // it ended before that call
    ::_exit(1);
  reset_signals();
  for (int stream = 0; stream < 3; ++stream)
    if (const int from = plan.streams[static_cast<std::size_t>(stream)];
        from != stream)
      ::dup2(from, stream);
  if (plan.cores) // if the system refuses, it runs on all cores
    ::sched_setaffinity(0, sizeof *plan.cores, &*plan.cores);
  pthread_sigmask(SIG_SETMASK, &plan.signals, nullptr);
  ::execvpe(plan.command[0], plan.command.data(), plan.variables.data());
  const int reason = errno;
  (void)!::write(plan.tell, &reason, sizeof reason);
  ::_exit(127);
}

[[noreturn]] void fail_to_start(const process_start& start, int reason) {
  throw error(errc::io_failure, "cannot start " + quoted_name(start.command[0])
                                  + ": " + std::strerror(reason));
}

/// Waits for the exec. Returns its error number, or 0.
int read_reason(int fd) {
  int reason = 0;
  ssize_t got = 0;
  do
    got = ::read(fd, &reason, sizeof reason);
  while (got < 0 && errno == EINTR);
  return got == sizeof reason ? reason : 0;
}

} // namespace

std::string process_end::text() const {
  return killed ? "was killed by " + signal_name(number)
                : "failed with exit code " + std::to_string(number);
}

rank_process::rank_process(const process_start& start) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0)
    fail_to_start(start, errno);
  const descriptor told{ends[0]};
  descriptor tell{ends[1]};
  {
    const signals_held while_it_starts;
    const child_plan plan{pointers_to(start.command),
                          pointers_to(start.variables),
                          start.streams,
                          start.cores,
                          while_it_starts.before(),
                          ::getpid(),
                          tell.get()};
    id_ = ::fork();
    if (id_ == 0)
      become_command(plan);
  }
  if (id_ < 0)
    fail_to_start(start, errno);
  ::setpgid(id_, id_); // whoever of the two is first
  { const descriptor closed = std::move(tell); }
  if (const int reason = read_reason(told.get()); reason != 0) {
    ::waitpid(id_, nullptr, 0);
    fail_to_start(start, reason);
  }
}

rank_process::~rank_process() {
  send(SIGKILL);
  int status = 0;
  while (::waitpid(id_, &status, 0) < 0 && errno == EINTR)
    continue;
}

void rank_process::send(int signal) const {
  ::kill(-id_, signal);
}

const std::optional<process_end>& rank_process::look() {
  siginfo_t info = {};
  if (!end_
      && ::waitid(P_PID, static_cast<id_t>(id_), &info,
                  WEXITED | WNOHANG | WNOWAIT)
           == 0
      && info.si_pid == id_)
    end_ = process_end{info.si_code != CLD_EXITED, info.si_status};
  return end_;
}

} // namespace troupe::apps
