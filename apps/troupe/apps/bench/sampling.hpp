// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

namespace troupe::apps {

/// Bytes of heap in use.
double heap_bytes();

/// Nanoseconds of one call of `work`, which is called until `at_least_ns` have
/// gone by.
double time_of(const std::function<void()>& work, double at_least_ns);

} // namespace troupe::apps
