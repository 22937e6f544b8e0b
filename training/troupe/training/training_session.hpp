// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/actors/executor.hpp>
#include <troupe/training/data/batch_source.hpp>
#include <troupe/training/data/generator_source.hpp>
#include <troupe/training/evaluation.hpp>
#include <troupe/training/snapshots/snapshot_options.hpp>
#include <troupe/training/training_loop.hpp>
#include <troupe/training/training_program.hpp>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace troupe {

/// How a session trains.
struct session_options {
  /// The loss is that of the program. Without `parameters`, the startup program
  /// makes them with the executor's seed.
  executor_options executor = {};
  snapshot_options snapshots = {};
  /// The form of the run's batches, if it is known: a snapshot of a run with
  /// another form is then refused.
  std::optional<generated_batches> batches = std::nullopt;
};

/// How long a session trains, and how often it takes snapshots.
struct training_plan {
  std::uint64_t steps = 0;          ///< of the whole run; 0: see `epochs`
  std::uint64_t epochs = 1;         ///< if `steps` is 0
  std::uint64_t snapshot_every = 0; ///< steps; 0: never
};

/// A network that is being trained: its parameters, its executor, its position
/// in the run, its snapshots.
///
/// Sessions of one process share nothing but the machine. None prints, exits,
/// or handles signals.
///
/// Thread rule: one thread at a time.
class training_session {
public:
  /// Makes the parameters, goes on from the newest snapshot if the options say
  /// so, and makes the executor. Throws what `executor` and `run_startup`
  /// throw, error(invalid_argument) if the snapshots are of another run, and
  /// error(io_failure) if nothing can be written to their folder.
  training_session(training_program program, session_options options);
  ~training_session(); ///< cancels running steps; waits for the last snapshot
  training_session(const training_session&) = delete;
  training_session& operator=(const training_session&) = delete;

  /// The network that is being trained.
  const training_program& program() const noexcept;
  /// The executor of the training program.
  executor& exe() noexcept;
  /// How far the run has come.
  const run_position& position() const noexcept;

  /// Trains on batches of `source` from the present position on, as
  /// `run_training` does. The observer's `pauses_after` and `pause` are called
  /// besides the session's own pauses for snapshots. Waits for the last
  /// snapshot and throws error(io_failure) if one could not be written.
  ///
  /// If this throws, no step is running, `position` counts all steps that have
  /// updated the parameters, and the session can go on. A callback cannot begin
  /// another run: error(invalid_argument).
  training_report run(batch_source& source, const training_plan& plan,
                      training_observer observer = {});

  ///@{
  /// For those who have batches one by one, and do not wait: a step on `batch`,
  /// as `executor::run_async`. When it has ended, and before a snapshot is
  /// taken, `count_step` says so, on the session's thread.
  void run_async(const feed_map& batch, std::span<const std::string> fetches,
                 std::function<void(step_outcome)> done);
  /// A step on `samples` samples has ended with this loss.
  void count_step(double loss, std::int64_t samples);
  ///@}

  /// The learning rate of the next step. Throws as `learning_rate_variable`
  /// does. Call it while no step is running.
  double learning_rate() const;
  /// Steps that begin from now on use this rate. Throws as above, and
  /// error(invalid_argument) for one that is negative or no finite float32.
  void set_learning_rate(double rate);

  /// Loss and accuracy with the present parameters, on the first device,
  /// without disturbing the training. Throws error(invalid_argument) while a
  /// step is running.
  /// @param steps batches; 0: an epoch of `samples`
  evaluation evaluate(batch_source& samples, std::uint64_t steps = 0);
  /// The options of an executor that evaluates on copies of the parameters:
  /// the first device, the same actor system.
  executor_options options_of_evaluation() const;
  /// Copies of the parameters and statistics that the test program has. Throws
  /// error(invalid_argument) while a step is running.
  std::shared_ptr<scope> copied_parameters();

  /// Called when a snapshot is written: why it could not be, or nothing.
  using snapshot_written =
    std::function<void(const std::optional<std::string>& failure)>;
  /// Takes a snapshot and writes it while training goes on. Waits for the one
  /// before. Throws error(invalid_argument) while a step is running, and if the
  /// session has no folder for snapshots.
  /// @param written is called on another thread; can be empty
  void take_snapshot(snapshot_written written = {});
  /// Waits until all is written. Throws error(io_failure).
  void require_snapshots_written();
  /// "runs/step-00000120": the snapshot of the present position.
  std::string snapshot_name() const;
  /// What the application may want to show of the snapshots, a line each.
  std::vector<std::string> take_notes();

  /// Writes a program folder with the present parameters. What was saved there
  /// before is replaced in one step; files of other names stay. Throws
  /// error(io_failure), which leaves the folder as it was, and
  /// error(invalid_argument) while a step is running.
  void save(const std::filesystem::path& folder);

private:
  struct impl;
  std::unique_ptr<impl> impl_;
};

} // namespace troupe
