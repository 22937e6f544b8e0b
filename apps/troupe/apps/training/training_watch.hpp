// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/actors/executor.hpp>
#include <troupe/actors/tracing/step_watchdog.hpp>
#include <troupe/apps/rank_part.hpp>
#include <troupe/apps/results/flight_dumps.hpp>
#include <troupe/apps/stragglers/op_times.hpp>
#include <troupe/apps/stragglers/straggler_watch.hpp>

#include <functional>
#include <memory>
#include <string>

namespace troupe::apps {

/// Writes a line. Any thread.
void tell_on_stderr(const std::string& what);

/// Makes the kernels of a run measure themselves, also those that are slow by
/// the user's wish.
/// @param times outlives all executors with these options
void measure_ops(executor_options& options, op_times& times);

/// Takes a line that the user must not miss. Called on any thread.
using tell_user = std::function<void(const std::string&)>;

/// Names slow ranks (straggler_finder.hpp), and knows how long ops usually
/// take.
/// @param exe outlives the watch, as does `times`
std::unique_ptr<straggler_watch> watch_ranks(executor& exe, op_times& times,
                                             const rank_part& part,
                                             tell_user tell);

/// Tells why a step does not go on, and writes a dump. Null if the user wants
/// no watchdog.
/// @param seconds of `--watchdog`
/// @param dumps must outlive the watchdog
/// @param about when the training waits for data, and its rank
std::unique_ptr<step_watchdog> watch_steps(executor& exe, double seconds,
                                           flight_dumps& dumps,
                                           watchdog_context about,
                                           tell_user tell);

} // namespace troupe::apps
