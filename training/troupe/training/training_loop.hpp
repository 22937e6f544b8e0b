// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/actors/executor.hpp>
#include <troupe/actors/tracing/data_wait.hpp>
#include <troupe/training/data/batch_source.hpp>
#include <troupe/training/step_metrics.hpp>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace troupe {

/// Which steps of a run update the parameters (`executor_options::accumulate`):
/// every N-th of an epoch, and the last one of an epoch and of the run. So the
/// updates are those of batches that are N times as large.
struct update_steps {
  std::uint64_t run_steps = 0; ///< steps of the whole run
  std::uint64_t epoch_steps = 1;
  std::uint64_t accumulate = 1; ///< N

  /// True if the last of so many steps, at least 1, updates the parameters.
  bool ends_with(std::uint64_t steps) const noexcept;
  /// True if it does, and something that is due every `interval` steps (0:
  /// never) is due after one of the steps of that update.
  bool is_due(std::uint64_t interval, std::uint64_t steps) const noexcept;
};

/// How far a run has come.
struct run_position {
  std::uint64_t steps = 0; ///< steps done
  /// Sums over the steps of the epoch that is under way.
  double epoch_loss = 0;
  double epoch_samples = 0;
};

/// Callbacks during a training. All are called on the caller's thread, in the
/// order of steps; empty ones are skipped. What one throws ends the run.
struct training_observer {
  std::function<void(const step_metrics&)> step;
  /// The step's fetched variables.
  std::function<void(const step_result&)> fetched;
  /// Epoch number from 1, its mean loss, samples per second.
  std::function<void(std::uint64_t epoch, double loss, double samples_per_s)>
    epoch;
  /// If true, no step is in flight while `epoch` is called, and the time of the
  /// call does not count.
  bool rest_between_epochs = false;
  /// Called at the end of each step.
  std::function<void(const run_position&)> done;
  /// True if `pause` is to be called after so many steps of the run, while no
  /// step is in flight. The time of the call does not count.
  std::function<bool(std::uint64_t steps)> pauses_after;
  std::function<void(const run_position&)> pause;
  /// Called before each step: true ends the run after the steps in flight.
  std::function<bool()> stop;
  /// Told when the run waits for its next batch. Null: nobody is.
  data_wait* waits_for_data = nullptr;
};

/// What a training has done.
struct training_report {
  std::uint64_t first_step = 0; ///< number of the first step of the history
  loss_history history;
  std::uint64_t steps = 0; ///< that this training ran
  std::uint64_t samples = 0;
  double seconds = 0;
  bool stopped = false; ///< the run ended before all steps were done

  /// Samples per second; 0 if no time has passed.
  double samples_per_s() const {
    return seconds > 0 ? static_cast<double>(samples) / seconds : 0;
  }
};

/// Takes out of a report what is about steps from number `steps` on: they are
/// done once more.
void forget_steps_from(std::uint64_t steps, training_report& report);

/// Runs `exe` on batches of `source` until all steps of the run are done, the
/// source has no more batches, or the observer stops it. A stop within a step
/// ends the run after the steps in flight, whose results are reported. Up to
/// `in_flight` steps overlap, so that the next batch is made while a step runs.
///
/// Throws the error of a failed step, and what the source or a callback throws.
/// No step is in flight then. Steps that were have ended: they are reported if
/// it was the source, or its batch, and only count otherwise.
///
/// Prints nothing, and handles no signals. The executor may be asked and
/// cancelled by others meanwhile: a cancelled step ends the run without an
/// error if the observer's `stop` says so.
/// @param position where the run begins; its steps are among those of the run,
///   and the last one of them has updated the parameters. Then where it has
///   come, also if this throws
/// @param report gets what this adds, also if it throws
void run_training(executor& exe, batch_source& source, run_position& position,
                  const update_steps& updates, std::uint32_t in_flight,
                  const std::vector<std::string>& fetches,
                  const training_observer& observer, training_report& report);

} // namespace troupe
