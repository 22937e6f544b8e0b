// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/actors/executor.hpp>
#include <troupe/apps/evaluation.hpp>
#include <troupe/apps/progress.hpp>
#include <troupe/apps/rank_part.hpp>
#include <troupe/apps/training/train_run.hpp>
#include <troupe/training/training_loop.hpp>

#include <cstdint>

// What `troupe train` tells its user.

namespace troupe::apps {

/// The network, the devices and the numbers of actors and messages.
void describe_graph(const executor& exe, const train_options& options,
                    graph::merge_strategy strategy, const rank_part& part,
                    progress& shown);

/// Notes that steps count from the first: saved parameters do not record how
/// many steps the earlier run took.
void tell_of_start(const train_options& options, progress& shown);

void print_summary(const training_report& report, const executor_stats& stats,
                   bool json);

/// Tells, in the first rank, that the run was stopped. Returns the exit code.
int tell_stop(std::uint64_t steps, std::uint64_t of_steps,
              const rank_part& part);

/// Warns if a loss was not finite: the training itself continues to its end.
void warn_of_loss(const training_report& report, progress& shown);

void print_held_out(const hits& found, bool json);

} // namespace troupe::apps
