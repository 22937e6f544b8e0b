// SPDX-License-Identifier: Apache-2.0
#pragma once

// Tests with several processes: children run a function and communicate through
// pipes.

#include <doctest/doctest.h>
#include <grp.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <exception>
#include <functional>
#include <stdexcept>
#include <string>

namespace troupe::test {

struct pipe_pair {
  std::array<int, 2> ends{};
  pipe_pair() { REQUIRE(::pipe(ends.data()) == 0); }
  ~pipe_pair() {
    ::close(ends[0]);
    ::close(ends[1]);
  }
  template <class T>
  void put(T value) const {
    [[maybe_unused]] auto n = ::write(ends[1], &value, sizeof value);
  }
  template <class T>
  T get() const {
    T value{};
    REQUIRE(::read(ends[0], &value, sizeof value) == sizeof value);
    return value;
  }
};

/// Runs `act` in a child process. The child then exits with code 0, or with 1
/// if `act` throws.
inline pid_t in_child(const std::function<void()>& act) {
  const auto child = ::fork();
  if (child != 0)
    return child;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL); // a crashed test leaves no child behind
  try {
    act();
    ::_exit(0);
  } catch (const std::exception& e) {
    const auto line = std::string{"in a child process: "} + e.what() + "\n";
    (void)!::write(2, line.data(), line.size());
    ::_exit(1);
  }
}

/// Turns a process of root into one of `user`, whose only group has the same
/// number.
inline void become_user(uid_t user) {
  if (::setgroups(0, nullptr) != 0 || ::setgid(user) != 0
      || ::setuid(user) != 0)
    throw std::runtime_error("cannot become another user");
}

/// Turns a process of root into one of a user without other processes. It may
/// then have at most `most` threads (`ulimit -u`), including the current one.
inline void allow_threads(rlim_t most) {
  constexpr uid_t first_user = 100'000'000;
  become_user(first_user + static_cast<uid_t>(::getpid()));
  const rlimit limit{most, most};
  if (::setrlimit(RLIMIT_NPROC, &limit) != 0)
    throw std::runtime_error("cannot limit threads");
}

/// Waits for `child` and returns its exit code; -1 if a signal ended it.
inline int exit_code(pid_t child) {
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

} // namespace troupe::test
