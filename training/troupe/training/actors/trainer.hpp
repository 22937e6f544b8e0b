// SPDX-License-Identifier: Apache-2.0
#pragma once

// A training session as an actor of an application's own actor system.
// docs/embedding.md has examples.

#include <troupe/training/actors/errors.hpp>
#include <troupe/training/actors/messages.hpp>
#include <troupe/training/training_session.hpp>

#include <caf/typed_actor.hpp>

#include <cstddef>

namespace troupe {

/// The address of a trainer: it says which messages a trainer understands
/// (messages.hpp).
///
/// Requests take effect in the order in which they come; a batch, an evaluation
/// and a snapshot see the parameters after all batches before them. Requests
/// that cannot begin yet wait, at most `trainer_options::most_waiting` of them.
/// One more is answered with error(busy) at once: that is how a producer learns
/// to slow down. While the trainer is paused, batches wait, and other requests
/// go on before them (`pause_training`). `ask_state`, `ask_handle`,
/// `pause_training`, `resume_training`, `stop_training`, `subscribe` and
/// `unsubscribe` do not wait.
///
/// A request whose timeout is over keeps its place, and takes effect all the
/// same: CAF does not tell a receiver that a sender no longer waits.
///
/// A trainer blocks no thread while a step runs, and answers meanwhile. It can
/// be monitored and linked. A failed step, or a batch that does not fit the
/// program, is answered with an error of `error_category`, and the trainer goes
/// on. Steps that had begun behind a failed one fail with error(cancelled). An
/// exit message ends it at once: running steps are cancelled, and what
/// waits is refused with error(cancelled).
using trainer = caf::typed_actor<
  actors::answers<train_batch, trained_step>,
  actors::answers<evaluate_batch, evaluation>,
  actors::answers<change_learning_rate, void>,
  actors::answers<pause_training, void>, actors::answers<resume_training, void>,
  actors::answers<take_snapshot, taken_snapshot>,
  actors::answers<save_program_to, void>,
  actors::answers<ask_parameters, parameter_set>,
  actors::answers<ask_state, trainer_state>,
  actors::answers<stop_training, trainer_state>,
  actors::answers<subscribe, void>, actors::answers<unsubscribe, void>,
  actors::answers<ask_handle, caf::actor>>;

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
