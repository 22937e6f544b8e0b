// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/apps/data/batch_source.hpp>

#include <cstddef>
#include <memory>

namespace caf {
class actor_system;
} // namespace caf

namespace troupe::apps {

/// The batches of `source`, made ahead of time by an actor of `system`: while a
/// step trains, up to `ahead` (at least 1) of the following batches are in the
/// making or ready. The queue is bounded by requests: a batch is asked for when
/// one is taken, so that a slow consumer stops the actor.
///
/// Batches are asked for in the order of steps and epochs. Asking for another
/// one than the next throws away what was made ahead.
///
/// Only the actor calls `source` from here on, on any thread of the system.
/// What it throws is thrown by the `batch` call for that batch. Destroy the
/// result before the system; it waits for the batch in the making.
std::unique_ptr<batch_source>
make_prefetching_source(std::unique_ptr<batch_source> source, std::size_t ahead,
                        caf::actor_system& system);

} // namespace troupe::apps
