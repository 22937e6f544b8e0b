// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/apps/data/batch_source.hpp>
#include <troupe/apps/data/classifier.hpp>
#include <troupe/apps/program_source.hpp>
#include <troupe/apps/stop_request.hpp>

#include <cstdint>
#include <optional>

namespace troupe::apps {

/// How well a network does on samples that it does not learn from.
struct evaluation {
  double loss = 0;             ///< mean over all samples
  std::optional<hits> answers; ///< of a classifier
  std::int64_t samples = 0;
};

/// Runs the bundle's test program on `steps` batches.
/// @param options devices, threads and scope; loss and fetches are set here.
/// @param stop null, or what ends it, within a step too, with error(cancelled)
/// that tells how many were done
evaluation evaluate(const program_bundle& bundle, executor_options options,
                    batch_source& source, std::uint64_t steps,
                    const stop_request* stop = nullptr);

/// The same on an epoch of `source` with copies of `parameters`, which are in
/// plain layout: whoever trains them does not notice, and no memory stays
/// taken. Call it while no step of that training is under way.
/// @param options of one CPU device; its scope is set here
evaluation evaluate_copies(const program_bundle& bundle,
                           executor_options options, batch_source& source,
                           const scope& parameters, const stop_request& stop);

} // namespace troupe::apps
