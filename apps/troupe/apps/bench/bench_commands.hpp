// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/apps/subcommands.hpp>

namespace troupe::apps {

/// Each adds one subcommand of `troupe bench`.
void add_bench_tasks(CLI::App& bench, action& chosen);
void add_bench_schedule(CLI::App& bench, action& chosen);

} // namespace troupe::apps
