// SPDX-License-Identifier: Apache-2.0
#include <troupe/base/assert.hpp>

#include <cstdio>
#include <cstdlib>

namespace troupe {

void assertion_failed(const char* condition, const char* file,
                      int line) noexcept {
  std::fprintf(stderr, "%s:%d: internal invariant broken: %s\n", file, line,
               condition);
  std::abort();
}

} // namespace troupe
