// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/apps/program_source.hpp>
#include <troupe/apps/training/train_run.hpp>
#include <troupe/training/data/batch_source.hpp>

#include <cstdint>
#include <memory>

namespace caf {
class actor_system;
} // namespace caf

namespace troupe::apps {

/// The source of a training's batches, as its options say. Throws usage_error
/// if they name none, and what the sources throw.
/// @param share of each batch that it makes
std::unique_ptr<batch_source> open_source(const train_options& options,
                                          const program_bundle& bundle,
                                          arena& memory,
                                          batch_share share = {});
/// The same. Prefetches batches on an actor of `system`, except synthetic ones,
/// which are generated only once.
std::unique_ptr<batch_source> make_source(const train_options& options,
                                          const program_bundle& bundle,
                                          arena& memory, batch_share share,
                                          caf::actor_system& system);

/// The held-out samples of the training data. Null if there are none, if the
/// network is not a classifier, or in a dry run.
std::unique_ptr<batch_source> open_held_out(const train_options& options,
                                            const program_bundle& bundle,
                                            arena& memory);

/// Number of steps of the run. Throws usage_error if they cannot be counted.
std::uint64_t count_steps(const train_options& options,
                          const batch_source& source);

} // namespace troupe::apps
