// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <csignal>
#include <cstdlib>

#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

namespace troupe::test {

enum class child_end { finished, failed, killed, went_on, not_traced };

/// Runs `act` in a child process and stops the child before its system call
/// number `calls` (from 0 on), if it gets there. `there` gets its process id
/// and returns how it ends. `not_traced`: this machine does not allow tracing a
/// child's calls; the child has been killed at its start.
template <class Act, class There>
child_end stopped_before(int calls, Act&& act, There&& there) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr);
    std::raise(SIGSTOP);
    try {
      act();
    } catch (...) {
      std::_Exit(1);
    }
    std::_Exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, WUNTRACED);
  if (::ptrace(PTRACE_SETOPTIONS, child, nullptr, PTRACE_O_EXITKILL) != 0) {
    ::kill(child, SIGKILL);
    ::waitpid(child, &status, 0);
    return child_end::not_traced;
  }
  // Each call stops the child twice: before and after it.
  for (int stops = 0; WIFSTOPPED(status); ++stops) {
    if (stops == 2 * calls + 1)
      return there(child);
    ::ptrace(PTRACE_SYSCALL, child, nullptr, nullptr);
    ::waitpid(child, &status, 0);
  }
  return status == 0 ? child_end::finished : child_end::failed;
}

/// Kills the child before that call. This covers all states on disk, because a
/// process with one thread changes nothing on disk between two system calls.
template <class Act>
child_end killed_after(int calls, Act&& act) {
  return stopped_before(calls, act, [](pid_t child) {
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    return child_end::killed;
  });
}

/// Calls `meanwhile` with the child's process id before that call. The child
/// then goes on.
template <class Act, class Meanwhile>
child_end met_after(int calls, Act&& act, Meanwhile&& meanwhile) {
  return stopped_before(calls, act, [&](pid_t child) {
    meanwhile(child);
    int status = 0;
    do {
      ::ptrace(PTRACE_CONT, child, nullptr, nullptr);
      ::waitpid(child, &status, 0);
    } while (WIFSTOPPED(status));
    return status == 0 ? child_end::went_on : child_end::failed;
  });
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

/// Runs `act` once for each of its system calls, each time in the state that
/// `prepare` makes, and `meanwhile` before that call. Calls `check` with the
/// end of each run. Returns the number of calls.
template <class Prepare, class Act, class Meanwhile, class Check>
int meet_at_each_call(Prepare&& prepare, Act&& act, Meanwhile&& meanwhile,
                      Check&& check) {
  for (int calls = 0;; ++calls) {
    prepare();
    const auto end = met_after(calls, act, meanwhile);
    if (end == child_end::not_traced || end == child_end::finished)
      return calls;
    check(end);
  }
}

} // namespace troupe::test
