// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/actors/configure.hpp>

#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>

namespace troupe::test {

/// An application's actor system with two workers, which executors share.
struct application {
  caf::actor_system_config config;
  caf::actor_system system;
  application() : system{configured(config)} {}

private:
  static caf::actor_system_config& configured(caf::actor_system_config& c) {
    configure(c, 2);
    return c;
  }
};

} // namespace troupe::test
