// SPDX-License-Identifier: Apache-2.0

// Apart from the engine: a program that only asks does not load the module.
#include <troupe/base/module.hpp>
#include <troupe/comm/engine/join.hpp>

#include <gloo/config.h>

namespace troupe::comm {

engine_support gloo_support() {
  return {.is_built = true,
          .version = std::to_string(GLOO_VERSION_MAJOR) + "."
                     + std::to_string(GLOO_VERSION_MINOR) + "."
                     + std::to_string(GLOO_VERSION_PATCH),
          .is_usable = has_module("troupe_gloo")};
}

} // namespace troupe::comm
