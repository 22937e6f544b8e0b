// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/graph/program.hpp>
#include <troupe/training/prediction.hpp>

#include <functional>
#include <future>
#include <memory>

namespace troupe {

/// A trained network that answers requests of any thread, in this process.
/// Requests of several callers share a step (`predictor_options`). It is a
/// predictor (actors/predictor.hpp) behind functions instead of messages.
///
/// Thread rule: any thread, also in handlers of actors and in functions that
/// get answers. The exception is the destructor: it waits for the predictor, so
/// its own workers must not call it, nor functions that get answers.
class inference_session {
public:
  /// Starts a predictor with copies of `parameters`, in its own actor system
  /// unless `options.executor.system` names one. If there is an example, the
  /// session is warm on return. Throws as `spawn_predictor` does.
  /// @param test a program without gradients, e.g. `training_program::test`, or
  ///   what `graph::read_program` reads from a saved inference program
  inference_session(const graph::program& test, const parameter_set& parameters,
                    predictor_options options);
  /// Ends the predictor. Each request that has not been answered is answered
  /// with error(cancelled), before the destructor returns.
  ~inference_session();
  inference_session(const inference_session&) = delete;
  inference_session& operator=(const inference_session&) = delete;

  ///@{
  /// The outputs for these feeds, of one or more samples. The feeds are
  /// borrowed: nobody may write to their memory until the answer has come.
  ///
  /// Throws before anything runs, for feeds that the program does not take
  /// (`executor::run`), error(invalid_argument) for one that would set a
  /// parameter, and error(busy) if `most_waiting` requests wait. What fails
  /// later is the future's exception, or `prediction_outcome::failure`.
  /// `done` is called once, on a worker. It must be short, and must not wait
  /// for another answer. What it throws is dropped. Without it:
  /// error(invalid_argument).
  std::future<prediction> predict(feed_map feeds);
  void predict(feed_map feeds, std::function<void(prediction_outcome)> done);
  ///@}

  /// Replaces the parameters for all requests that come later, and returns when
  /// that is done. Requests are answered meanwhile. Throws what the constructor
  /// throws for such parameters, such as error(not_found) for one that is
  /// missing; the old ones then stay.
  void replace_parameters(const parameter_set& parameters);

  /// What the session has done.
  prediction_counts counts() const;

private:
  struct impl;
  std::unique_ptr<impl> impl_;
};

} // namespace troupe
