// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <doctest/doctest.h>

#include <csignal>
#include <utility>

#include <sys/wait.h>
#include <unistd.h>

namespace troupe::test {

/// A child process that has something until it is killed.
class waiting_child {
public:
  /// Calls `act` in the child. `act` gets a function that tells that the child
  /// has it, and that does not return.
  template <class Act>
  explicit waiting_child(Act&& act) {
    int ends[2];
    REQUIRE(::pipe(ends) == 0);
    id_ = ::fork();
    if (id_ == 0) {
      std::forward<Act>(act)([&] {
        (void)!::write(ends[1], "", 1);
        for (;;)
          ::pause();
      });
      ::_exit(1);
    }
    char byte = 0;
    ::close(ends[1]);
    CHECK(::read(ends[0], &byte, 1) == 1);
    ::close(ends[0]);
  }
  ~waiting_child() { kill(); }
  waiting_child(const waiting_child&) = delete;
  waiting_child& operator=(const waiting_child&) = delete;

  pid_t id() const noexcept { return id_; }
  void kill() {
    if (id_ == 0)
      return;
    ::kill(id_, SIGKILL);
    ::waitpid(id_, nullptr, 0);
    id_ = 0;
  }

private:
  pid_t id_ = 0;
};

} // namespace troupe::test
