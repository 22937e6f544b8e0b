// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdlib>

namespace troupe::test {

/// True in a long run (tools/check-long): the environment variable
/// TROUPE_TEST_LONG is set. Some cases then try many more seeds.
inline bool is_long_run() {
  return std::getenv("TROUPE_TEST_LONG") != nullptr;
}

} // namespace troupe::test
