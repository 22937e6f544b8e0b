// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/training/actors/predictor.hpp>
#include <troupe/training/inference/request_queue.hpp>

#include <functional>
#include <memory>

namespace troupe::actors {

/// A predictor, for callers that are no actors: they add to its queue.
struct predictor_front {
  predictor address;
  std::shared_ptr<inference::request_queue> queue;
  /// Does what a `parameter_set` message does. Any thread.
  std::function<void(const parameter_set&)> replace;
};

/// As `spawn_predictor`.
predictor_front start_predictor(caf::actor_system& system,
                                const graph::program& test,
                                const parameter_set& parameters,
                                predictor_options options);

} // namespace troupe::actors
