// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/actors/executor.hpp>

#include <string>
#include <vector>

namespace troupe::test {

/// A way to run a graph.
struct configuration {
  std::string name;
  executor_options options; ///< without parameters
};

/// One of each kind: one device with a wide stream, two, two places, edges that
/// are messages, mixed edges, devices that complete late, collectives with a
/// handle per device. All with the default lowering, except for options that
/// places and such collectives do not support. Each call makes new devices.
std::vector<configuration> all_configurations();

} // namespace troupe::test
