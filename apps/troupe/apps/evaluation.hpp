// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/apps/program_source.hpp>
#include <troupe/apps/stop_request.hpp>
#include <troupe/training/evaluation.hpp>

#include <cstdint>

namespace troupe::apps {

/// Runs the bundle's test program on `steps` batches.
/// @param options devices, threads and scope; loss and fetches are set here
/// @param stop a request ends the evaluation, also within a step, with an
///   error(cancelled) that says how many steps were done
evaluation evaluate(const program_bundle& bundle, executor_options options,
                    batch_source& source, std::uint64_t steps,
                    const stop_request& stop);

/// The same on an epoch of `source`, with copies of `parameters`, so that it
/// does not disturb their training. The copies are freed at the end.
/// `parameters` must be in plain layout. Call it while no step of that training
/// is in flight.
/// @param options with one CPU device; the scope is set here
evaluation evaluate_copies(const program_bundle& bundle,
                           executor_options options, batch_source& source,
                           const scope& parameters, const stop_request& stop);

} // namespace troupe::apps
