// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/graph/program.hpp>

namespace troupe::graph {

/// Gives role Optimize to ops of the main block that count updates but have
/// role Forward, as Paddle's LookAhead and ExponentialMovingAverage write them:
/// ops `increment` of a persistable variable. They concern no samples, so
/// devices without samples run them, too.
program mark_update_counters(program p);

/// True if the main block has such an op.
bool has_update_counters(const program& p);

} // namespace troupe::graph
