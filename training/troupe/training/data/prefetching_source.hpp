// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/training/data/batch_source.hpp>

#include <cstddef>
#include <memory>

namespace caf {
class actor_system;
} // namespace caf

namespace troupe {

/// Prefetches the batches of `source` with an actor of `system`. While a step
/// trains, up to `ahead` (at least 1) of the following batches are ready or
/// being made. The queue is bounded by requests: taking a batch requests
/// another one, so a slow consumer stops the actor.
///
/// Batches are requested in the order of steps and epochs. A call of `batch`
/// for any other than the next batch discards the prefetched ones.
///
/// From now on only the actor uses `source`, on any thread of the system. If
/// `source` throws, the `batch` call for that batch throws the same exception.
/// Destroy the result before the system; the destructor waits for all requested
/// batches.
std::unique_ptr<batch_source>
make_prefetching_source(std::unique_ptr<batch_source> source, std::size_t ahead,
                        caf::actor_system& system);

} // namespace troupe
