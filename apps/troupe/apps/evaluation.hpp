// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/apps/batch_source.hpp>
#include <troupe/apps/classifier.hpp>
#include <troupe/apps/program_source.hpp>

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
evaluation evaluate(const program_bundle& bundle, executor_options options,
                    batch_source& source, std::uint64_t steps);

} // namespace troupe::apps
