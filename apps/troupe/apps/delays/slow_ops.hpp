// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/actors/executor.hpp>
#include <troupe/graph/program.hpp>

#include <string>
#include <vector>

namespace troupe::apps {

/// Makes ops slower than they are, as the entries of `slow` say
/// (`delay_table::grammar::names`): after an op has computed, it sleeps for a
/// time, or keeps its core busy until it has used the factor of its own time.
/// For trying out what notices slow devices and ranks. Results do not change.
///
/// Throws usage_error, also for a name that the program has no op for.
void slow_down(executor_options& options, const graph::program& program,
               const std::vector<std::string>& slow);

} // namespace troupe::apps
