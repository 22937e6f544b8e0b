// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

namespace caf {
class actor_system;
} // namespace caf

namespace troupe::actors {

/// While it lives, the calling thread runs jobs for the executors of an actor
/// system: kernels, and what else belongs to steps. Handlers of CAF actors are
/// no jobs.
class running_jobs {
public:
  explicit running_jobs(const caf::actor_system& of) noexcept
    : before_(std::exchange(current(), &of)) {}
  ~running_jobs() { current() = before_; }
  running_jobs(const running_jobs&) = delete;
  running_jobs& operator=(const running_jobs&) = delete;

  /// True if the calling thread runs a job of this system now.
  static bool are_of(const caf::actor_system& system) noexcept {
    return current() == &system;
  }

private:
  static const caf::actor_system*& current() noexcept {
    thread_local const caf::actor_system* system = nullptr;
    return system;
  }

  const caf::actor_system* before_;
};

} // namespace troupe::actors
