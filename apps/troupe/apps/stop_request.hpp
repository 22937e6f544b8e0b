// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <signal.h>

#include <cstddef>
#include <memory>

namespace troupe::apps {

/// Turns Ctrl-C (SIGINT) and SIGTERM into a flag that a long loop looks at
/// between steps, for as long as the object lives. A second signal ends the
/// process as usual.
///
/// The handler has a stack of its own: kernels of the libraries keep values
/// below the stack pointer, farther than the system leaves room for, and the
/// thread that waits for a step runs kernels too. A handler on its stack made 5
/// of 100 runs crash.
///
/// Thread rule: one object at a time, made and destroyed by the process's first
/// thread, which signals come to.
class stop_request {
public:
  stop_request();
  ~stop_request();
  stop_request(const stop_request&) = delete;
  stop_request& operator=(const stop_request&) = delete;

  bool stopped() const noexcept;

private:
  std::unique_ptr<std::byte[]> stack_;
  stack_t stack_before_ = {};
};

} // namespace troupe::apps
