// SPDX-License-Identifier: Apache-2.0
#pragma once

// A trained network that answers, as an actor of an application's own actor
// system. docs/embedding.md has examples.

#include <troupe/graph/program.hpp>
#include <troupe/training/actors/errors.hpp>
#include <troupe/training/actors/messages.hpp>

#include <caf/typed_actor.hpp>

namespace troupe {

/// The address of a predictor.
///
/// `predict_batch` is answered with the outputs. Requests that come while steps
/// run share a step (`predictor_options`). One that does not fit the program is
/// answered with its own error. If a step of several requests fails, each of
/// them runs again alone, so that only those fail whose values are at fault.
///
/// A `parameter_set`, as a trainer gives it, replaces the parameters for all
/// requests that come later; the answer is empty. Requests that are too many
/// are answered with error(busy). `stop_predicting` ends the predictor after
/// the steps that run. An exit message ends it at once: running steps are
/// cancelled, and each request is answered with error(cancelled).
using predictor =
  caf::typed_actor<actors::answers<predict_batch, prediction>,
                   actors::answers<parameter_set, void>,
                   actors::answers<ask_handle, caf::actor>,
                   actors::answers<ask_state, prediction_counts>,
                   actors::answers<stop_predicting, prediction_counts>>;

/// Starts a predictor with copies of `parameters`. Only what the outputs need
/// is computed, and only its feeds are sent. Throws on the caller's thread:
/// what `make_output_program` and `executor` throw, what the example's steps
/// throw, and error(invalid_argument) for options out of range and for a
/// program whose requests cannot be merged.
/// @param test a program without gradients, e.g. `training_program::test`
/// @param parameters in plain layout; not used after the call
predictor spawn_predictor(caf::actor_system& system, const graph::program& test,
                          const parameter_set& parameters,
                          predictor_options options);

} // namespace troupe
