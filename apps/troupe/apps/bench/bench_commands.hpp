// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/apps/option_checks.hpp>
#include <troupe/apps/subcommands.hpp>

namespace troupe::apps {

/// The number of workers for `--threads`; 0: one per core. Throws usage_error
/// if there are more workers than cores, because figures per worker would be
/// wrong.
int choose_workers(int threads);

/// Checks of `--repeat` and `--sample-ms`.
inline CLI::Validator repeat_count() {
  return positive(1e9);
}
inline CLI::Validator sample_length() {
  return not_negative(3.6e6); // an hour
}

/// Each adds one subcommand of `troupe bench`.
void add_bench_tasks(CLI::App& bench, action& chosen);
void add_bench_schedule(CLI::App& bench, action& chosen);
void add_bench_steps(CLI::App& bench, action& chosen);
void add_bench_latency(CLI::App& bench, action& chosen);
void add_bench_inference(CLI::App& bench, action& chosen);
void add_bench_train(CLI::App& bench, action& chosen);
void add_bench_comm(CLI::App& bench, action& chosen);

} // namespace troupe::apps
