// SPDX-License-Identifier: Apache-2.0

// Apart from the engine: a program that only asks does not load the module.
#include <troupe/base/module.hpp>
#include <troupe/comm/engine/join.hpp>

#include <gloo/config.h>

namespace troupe::comm {

engine_support gloo_support() {
  const auto is_there = has_module("troupe_gloo");
  return {.is_built = is_there,
          .version = std::to_string(GLOO_VERSION_MAJOR) + "."
                     + std::to_string(GLOO_VERSION_MINOR) + "."
                     + std::to_string(GLOO_VERSION_PATCH),
          .is_usable = is_there};
}

} // namespace troupe::comm
