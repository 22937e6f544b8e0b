// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>

#include <memory>

namespace troupe::actors {

/// An actor system that an executor makes for itself, with Troupe's scheduling
/// policy.
struct own_system {
  caf::actor_system_config config;
  std::unique_ptr<caf::actor_system> system;

  /// Throws error(kernel_failure) if the system has no threads for it.
  /// @param threads as in `executor_options`
  /// @param over_processes with CAF's middleman
  own_system(int threads, bool over_processes);
};

} // namespace troupe::actors
