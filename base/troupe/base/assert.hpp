// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace troupe {

/// Reports a broken internal invariant on stderr and aborts. Only
/// `TROUPE_ASSERT` calls it; user input must never trigger it.
[[noreturn]] void assertion_failed(const char* condition, const char* file,
                                   int line) noexcept;

} // namespace troupe

/// Checks an internal invariant in every build type: a branch that is never
/// taken costs less than a wrong result.
#define TROUPE_ASSERT(condition)                                               \
  ((condition) ? void(0)                                                       \
               : ::troupe::assertion_failed(#condition, __FILE__, __LINE__))
