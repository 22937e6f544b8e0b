// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/apps/data/batch_source.hpp>
#include <troupe/apps/data/classifier.hpp>
#include <troupe/apps/program_source.hpp>
#include <troupe/apps/stop_request.hpp>

#include <cstdint>
#include <optional>

namespace troupe::apps {

/// The loss and accuracy of a network on samples that it does not train on.
struct evaluation {
  double loss = 0;             ///< mean over all samples
  std::optional<hits> answers; ///< only if the network is a classifier
  std::int64_t samples = 0;
};

/// Runs the bundle's test program on `steps` batches.
/// @param options devices, threads and scope; loss and fetches are set here.
/// @param stop can be null. A request ends the evaluation, also within a step,
/// with an error(cancelled) that says how many steps were done.
evaluation evaluate(const program_bundle& bundle, executor_options options,
                    batch_source& source, std::uint64_t steps,
                    const stop_request* stop = nullptr);

/// The same on an epoch of `source`, with copies of `parameters`, so that it
/// does not disturb their training. The copies are freed at the end.
/// `parameters` must be in plain layout. Call it while no step of that training
/// is in flight.
/// @param options with one CPU device; the scope is set here
evaluation evaluate_copies(const program_bundle& bundle,
                           executor_options options, batch_source& source,
                           const scope& parameters, const stop_request& stop);

} // namespace troupe::apps
