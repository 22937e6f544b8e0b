// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <csignal>
#include <cstdlib>

#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

namespace troupe::test {

enum class child_end { finished, killed, not_traced };

/// Runs `act` in a child process, which is killed before its system call number
/// `calls`, from 0 on, if it gets there: a process of one thread can change
/// nothing on disk between two of them. `not_traced`: this machine lets nobody
/// look at a child's calls; it has been killed at its start.
template <class Act>
child_end killed_after(int calls, Act&& act) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr);
    std::raise(SIGSTOP);
    act();
    std::_Exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, WUNTRACED);
  const auto kill = [&](child_end end) {
    ::kill(child, SIGKILL);
    ::waitpid(child, &status, 0);
    return end;
  };
  if (::ptrace(PTRACE_SETOPTIONS, child, nullptr, PTRACE_O_EXITKILL) != 0)
    return kill(child_end::not_traced);
  // A call stops the child twice, before and behind it.
  for (int stops = 0; WIFSTOPPED(status); ++stops) {
    if (stops == 2 * calls + 1)
      return kill(child_end::killed);
    ::ptrace(PTRACE_SYSCALL, child, nullptr, nullptr);
    ::waitpid(child, &status, 0);
  }
  return child_end::finished;
}

/// Kills `act` before each of its system calls in turn, each time in the state
/// that `prepare` makes, and calls `check` then and after the whole. Returns
/// how many calls there were.
template <class Prepare, class Act, class Check>
int kill_at_each_call(Prepare&& prepare, Act&& act, Check&& check) {
  for (int calls = 0;; ++calls) {
    prepare();
    const auto end = killed_after(calls, act);
    if (end != child_end::not_traced)
      check();
    if (end != child_end::killed)
      return calls;
  }
}

} // namespace troupe::test
