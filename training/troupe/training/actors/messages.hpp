// SPDX-License-Identifier: Apache-2.0
#pragma once

// What trainers, predictors and an application's actors tell each other. The
// messages stay within the process, because they share memory.

#include <troupe/actors/caf/caf.hpp>
#include <troupe/training/evaluation.hpp>
#include <troupe/training/prediction.hpp>

#include <caf/actor.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace troupe {

/// To a trainer: a step on this batch. The answer is `trained_step`.
struct train_batch {
  shared_batch feeds;
};
/// Answer of a trainer: a step that has ended.
struct trained_step {
  std::uint64_t step = 0;     ///< of the run
  double loss = 0;            ///< see `step_result`
  std::vector<double> losses; ///< per device
  std::int64_t samples = 0;
  double ms = 0; ///< from admission to end
};

/// To a trainer: loss, and accuracy of a classifier, on this batch, with the
/// parameters after all batches that were sent before. The answer is
/// `evaluation`. Training goes on meanwhile.
struct evaluate_batch {
  shared_batch feeds;
};

/// To a trainer: batches that are sent later are trained with this rate. The
/// answer is empty.
struct change_learning_rate {
  double rate = 0;
};

///@{
/// To a trainer: no step begins, or steps begin again. The answer is empty.
/// While it is paused, batches wait until no more fit. All else is done and
/// answered, before the batches that wait: an evaluation, a snapshot and
/// parameters are of the steps that have begun, and a changed learning rate is
/// also that of batches that wait.
struct pause_training {};
struct resume_training {};
///@}

/// To a trainer: a snapshot after all batches that were sent before. The answer
/// comes when it is on the disk.
struct take_snapshot {};
/// Answer of a trainer: which snapshot is on the disk.
struct taken_snapshot {
  std::string name; ///< "runs/step-00000120"
  std::uint64_t steps = 0;
};

/// To a trainer: writes a program folder with the parameters after all batches
/// that were sent before, as `training_session::save` does. The answer is
/// empty.
struct save_program_to {
  std::string folder;
};

/// To a trainer: the parameters after all batches that were sent before. The
/// answer is `parameter_set`.
struct ask_parameters {};

/// How it is. The answer is at once, and is the `trainer_state` of a trainer,
/// the `prediction_counts` of a predictor.
struct ask_state {};
/// Answer of a trainer: how it is.
struct trainer_state {
  std::uint64_t steps = 0; ///< that the run has done
  double last_loss = 0;    ///< NaN before the first step
  std::size_t waiting = 0; ///< requests that have not begun
  std::size_t running = 0;
  bool is_paused = false;    ///< by `pause_training`, or on a board
  std::uint64_t failed = 0;  ///< steps that have failed
  std::uint64_t refused = 0; ///< requests that were answered with `busy`
};

/// To a trainer: ends it. Running steps end as usual; what waits is refused
/// with error(cancelled). The answer is the last state. The trainer then ends
/// with the reason `normal`.
struct stop_training {};

/// To a trainer: sends `variable_value` requests to `to`, with the variable's
/// value in every `every`-th step. The answer is empty, or error(not_found) if
/// the variable is not among `executor_options::fetches`.
///
/// A value counts as waiting until `to` has answered it, with anything. While
/// `most_waiting` values wait, further ones are dropped: a slow subscriber
/// costs memory for so many values, and never holds up the training. The
/// subscription ends with `unsubscribe`, and when `to` ends.
struct subscribe {
  std::string variable;
  std::uint64_t every = 1;      ///< steps; at least 1
  std::size_t most_waiting = 1; ///< at least 1
  caf::actor to;
};
/// To a trainer: ends all subscriptions of `to` to this variable. The answer is
/// empty, also if there are none. `to` may still get values that were sent
/// before; if it has sent this itself, it gets none after the answer.
struct unsubscribe {
  std::string variable;
  caf::actor to;
};
/// To a subscriber of a trainer: see `subscribe`.
struct variable_value {
  std::string variable;
  std::uint64_t step = 0;
  std::vector<tensor> values; ///< see `step_result::fetched`
  std::uint64_t dropped = 0;  ///< values since the last one that was sent
};

/// To a predictor: the outputs for these feeds. The answer is `prediction`.
struct predict_batch {
  shared_batch feeds;
};

/// To a predictor: ends it. Running steps end as usual and their requests are
/// answered; what waits is refused with error(cancelled), and so is what comes.
/// The answer is the last `prediction_counts`. The predictor then ends with the
/// reason `normal`.
struct stop_predicting {};

/// To a trainer or a predictor: the actor of that op or variable handle of its
/// executor, such as "mul#3@cpu:0" (`handle_address`). The answer is a
/// `caf::actor`, at once, or error(not_found). With its executor, the actor
/// ends: that of a trainer when the trainer ends, that of a predictor also when
/// other parameters have replaced those that it has now.
struct ask_handle {
  std::string name;
};

} // namespace troupe

CAF_BEGIN_TYPE_ID_BLOCK(troupe_training, troupe::actors::type_ids::training)
CAF_ADD_TYPE_ID(troupe_training, (troupe::train_batch))
CAF_ADD_TYPE_ID(troupe_training, (troupe::trained_step))
CAF_ADD_TYPE_ID(troupe_training, (troupe::evaluate_batch))
CAF_ADD_TYPE_ID(troupe_training, (troupe::evaluation))
CAF_ADD_TYPE_ID(troupe_training, (troupe::change_learning_rate))
CAF_ADD_TYPE_ID(troupe_training, (troupe::pause_training))
CAF_ADD_TYPE_ID(troupe_training, (troupe::resume_training))
CAF_ADD_TYPE_ID(troupe_training, (troupe::take_snapshot))
CAF_ADD_TYPE_ID(troupe_training, (troupe::taken_snapshot))
CAF_ADD_TYPE_ID(troupe_training, (troupe::save_program_to))
CAF_ADD_TYPE_ID(troupe_training, (troupe::ask_parameters))
CAF_ADD_TYPE_ID(troupe_training, (troupe::parameter_set))
CAF_ADD_TYPE_ID(troupe_training, (troupe::ask_state))
CAF_ADD_TYPE_ID(troupe_training, (troupe::trainer_state))
CAF_ADD_TYPE_ID(troupe_training, (troupe::stop_training))
CAF_ADD_TYPE_ID(troupe_training, (troupe::subscribe))
CAF_ADD_TYPE_ID(troupe_training, (troupe::variable_value))
CAF_ADD_TYPE_ID(troupe_training, (troupe::predict_batch))
CAF_ADD_TYPE_ID(troupe_training, (troupe::prediction))
CAF_ADD_TYPE_ID(troupe_training, (troupe::ask_handle))
CAF_ADD_TYPE_ID(troupe_training, (troupe::stop_predicting))
CAF_ADD_TYPE_ID(troupe_training, (troupe::prediction_counts))
CAF_ADD_TYPE_ID(troupe_training, (troupe::unsubscribe))
CAF_END_TYPE_ID_BLOCK(troupe_training)

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::train_batch)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::trained_step)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::evaluate_batch)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::evaluation)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::change_learning_rate)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::pause_training)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::resume_training)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::take_snapshot)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::taken_snapshot)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::save_program_to)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::ask_parameters)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::parameter_set)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::ask_state)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::trainer_state)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::stop_training)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::subscribe)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::variable_value)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::predict_batch)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::prediction)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::ask_handle)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::stop_predicting)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::prediction_counts)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::unsubscribe)
