// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

namespace troupe::apps {

/// Bytes of heap in use.
double heap_bytes();

/// Mean nanoseconds of a call of `work`, which is called until `at_least_ns`
/// have passed.
double time_of(const std::function<void()>& work, double at_least_ns);

} // namespace troupe::apps
