// SPDX-License-Identifier: Apache-2.0
#pragma once

// A trained network that answers, as an actor of an application's own actor
// system. docs/embedding.md has examples.

#include <troupe/graph/program.hpp>
#include <troupe/training/actors/errors.hpp>
#include <troupe/training/actors/messages.hpp>

#include <caf/typed_actor.hpp>

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

namespace caf {
class actor_system;
} // namespace caf

namespace troupe {

/// The address of a predictor.
///
/// `predict_batch` is answered with the outputs. A `parameter_set`, as a
/// trainer gives it, replaces the parameters for all requests that come later;
/// the answer is empty. Requests wait, fail, and are refused with error(busy)
/// as those of a trainer.
using predictor =
  caf::typed_actor<caf::replies_to<predict_batch>::with<prediction>,
                   caf::reacts_to<parameter_set>>;

/// How a predictor computes.
struct predictor_options {
  /// Devices, kernels, steps in flight. Parameters, loss and fetches are set
  /// by the predictor.
  executor_options executor = {};
  /// Variables of the program that are answered; at least one.
  std::vector<std::string> outputs = {};
  std::size_t most_waiting = 64; ///< requests that wait, at least 1
};

/// Starts a predictor with copies of `parameters`. Only what the outputs need
/// is computed, and only its feeds are sent. Throws on the caller's thread:
/// what `make_output_program` and `executor` throw, and
/// error(invalid_argument).
/// @param test a program without gradients, e.g. `training_program::test`
/// @param parameters in plain layout; not used after the call
predictor spawn_predictor(caf::actor_system& system, const graph::program& test,
                          const parameter_set& parameters,
                          predictor_options options);

} // namespace troupe
