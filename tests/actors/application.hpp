// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/actors/caf/caf.hpp>
#include <troupe/actors/configure.hpp>

#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>

#include <memory>

namespace troupe::test {

/// A system with CAF's own scheduling policy.
inline std::unique_ptr<caf::actor_system>
make_plain_system(caf::actor_system_config& config, std::size_t workers) {
  init_message_types();
  actors::set_option(config, "scheduler.max-threads", workers);
  return std::make_unique<caf::actor_system>(config);
}

/// An application's actor system with two workers, which executors share.
struct application {
  caf::actor_system_config config;
  std::unique_ptr<caf::actor_system> owned = make_actor_system(config, 2);
  caf::actor_system& system = *owned;
};

} // namespace troupe::test
