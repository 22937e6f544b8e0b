// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <csignal>
#include <cstdlib>

#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

namespace troupe::test {

enum class child_end { finished, killed, not_traced };

/// Runs `act` in a child process and kills the child before its system call
/// number `calls` (from 0 on), if it gets there. This covers all states on
/// disk, because a process with one thread changes nothing on disk between two
/// system calls. `not_traced`: this machine does not allow tracing a child's
/// calls; the child has been killed at its start.
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
  // Each call stops the child twice: before and after it.
  for (int stops = 0; WIFSTOPPED(status); ++stops) {
    if (stops == 2 * calls + 1)
      return kill(child_end::killed);
    ::ptrace(PTRACE_SYSCALL, child, nullptr, nullptr);
    ::waitpid(child, &status, 0);
  }
  return child_end::finished;
}

/// Runs `act` once for each of its system calls and kills it before that call,
/// each time in the state that `prepare` makes. Calls `check` after each kill
/// and after the complete run. Returns the number of calls.
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
