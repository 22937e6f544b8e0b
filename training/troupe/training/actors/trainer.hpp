// SPDX-License-Identifier: Apache-2.0
#pragma once

// A training session as an actor of an application's own actor system.
// docs/embedding.md has examples.

#include <troupe/training/actors/errors.hpp>
#include <troupe/training/actors/messages.hpp>
#include <troupe/training/training_session.hpp>

#include <caf/typed_actor.hpp>

#include <cstddef>

namespace caf {
class actor_system;
} // namespace caf

namespace troupe {

/// The address of a trainer: it says which messages a trainer understands
/// (messages.hpp).
///
/// Requests take effect in the order in which they come; a batch, an evaluation
/// and a snapshot see the parameters after all batches before them. Requests
/// that cannot begin yet wait, at most `trainer_options::most_waiting` of them.
/// One more is answered with error(busy) at once: that is how a producer learns
/// to slow down. `ask_state`, `pause_training`, `resume_training`,
/// `stop_training` and `subscribe` do not wait.
///
/// A trainer blocks no thread while a step runs, and answers meanwhile. It can
/// be monitored and linked. A failed step, or a batch that does not fit the
/// program, is answered with an error of `error_category`, and the trainer goes
/// on. Steps that had begun behind a failed one fail with error(cancelled). An
/// exit message ends it at once: running steps are cancelled, and what
/// waits is refused with error(cancelled).
using trainer =
  caf::typed_actor<caf::replies_to<train_batch>::with<trained_step>,
                   caf::replies_to<evaluate_batch>::with<evaluation>,
                   caf::reacts_to<change_learning_rate>,
                   caf::reacts_to<pause_training>,
                   caf::reacts_to<resume_training>,
                   caf::replies_to<take_snapshot>::with<taken_snapshot>,
                   caf::reacts_to<save_program_to>,
                   caf::replies_to<ask_parameters>::with<parameter_set>,
                   caf::replies_to<ask_state>::with<trainer_state>,
                   caf::replies_to<stop_training>::with<trainer_state>,
                   caf::reacts_to<subscribe>>;

/// How a trainer trains.
struct trainer_options {
  session_options session = {};
  std::size_t most_waiting = 8; ///< requests that wait, at least 1
};

/// Makes a session and starts its trainer in `system`, which need not have
/// Troupe's scheduling policy (`configure`). Throws what the session throws, on
/// the caller's thread, and error(invalid_argument) for options that are none.
/// The trainer lives until it is told to end, or until nobody has its address
/// and it has nothing to do.
trainer spawn_trainer(caf::actor_system& system, training_program program,
                      trainer_options options = {});

} // namespace troupe
