// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/actors/executor.hpp>
#include <troupe/actors/tracing/step_watchdog.hpp>
#include <troupe/apps/rank_part.hpp>
#include <troupe/apps/train_run.hpp>

#include <memory>

namespace troupe::apps {

/// The trace of this rank's training: `--trace`, or else TROUPE_TRACE. In an
/// elastic job, each epoch of the job has one.
trace_options trace_of(const train_options& options, const rank_part& part);

/// Tells on stderr why a step does not go on. Null if the user wants no
/// watchdog.
/// @param seconds of `--watchdog`
std::unique_ptr<step_watchdog> watch_steps(const executor& exe, double seconds);

} // namespace troupe::apps
