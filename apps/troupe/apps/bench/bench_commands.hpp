// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/apps/subcommands.hpp>

namespace troupe::apps {

/// The workers that `--threads` asks for; 0: one per core. Throws usage_error
/// if they are more than the cores, since figures per worker would be wrong.
int choose_workers(int threads);

/// Each adds one subcommand of `troupe bench`.
void add_bench_tasks(CLI::App& bench, action& chosen);
void add_bench_schedule(CLI::App& bench, action& chosen);
void add_bench_steps(CLI::App& bench, action& chosen);
void add_bench_latency(CLI::App& bench, action& chosen);
void add_bench_train(CLI::App& bench, action& chosen);

} // namespace troupe::apps
