// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/actors/executor.hpp>
#include <troupe/graph/program.hpp>

#include <string>
#include <vector>

namespace troupe::apps {

/// Makes ops slower than they are: each op of a type sleeps for the time that
/// the entries of `slow` give it (`delay_table::read`), after it has computed.
/// For trying out what notices slow devices and ranks. Results do not change.
///
/// Throws usage_error, also for a type that the program has no op of.
void slow_down(executor_options& options, const graph::program& program,
               const std::vector<std::string>& slow);

} // namespace troupe::apps
