// SPDX-License-Identifier: Apache-2.0
#include <troupe/apps/bench/task_engine.hpp>

namespace troupe::apps {

engine_factory onetbb_engine() {
  return nullptr;
}

engine_factory onetbb_lightweight_engine() {
  return nullptr;
}

} // namespace troupe::apps
