// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/actors/executor.hpp>
#include <troupe/actors/tracing/step_watchdog.hpp>
#include <troupe/apps/results/flight_dumps.hpp>

#include <memory>

namespace troupe::apps {

/// Tells on stderr why a step does not go on, and writes a dump. Null if the
/// user wants no watchdog.
/// @param seconds of `--watchdog`
/// @param dumps must outlive the watchdog
/// @param about when the training waits for data, and its rank
std::unique_ptr<step_watchdog> watch_steps(executor& exe, double seconds,
                                           flight_dumps& dumps,
                                           const watchdog_context& about);

} // namespace troupe::apps
