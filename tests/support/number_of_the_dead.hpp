// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdlib>

#include <sys/wait.h>
#include <unistd.h>

namespace troupe::test {

/// A process number that no process has.
inline int number_of_the_dead() {
  const pid_t child = ::fork();
  if (child == 0)
    std::_Exit(0);
  ::waitpid(child, nullptr, 0);
  return child;
}

} // namespace troupe::test
