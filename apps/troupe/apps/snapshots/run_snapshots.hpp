// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/apps/data/batch_source.hpp>
#include <troupe/apps/program_source.hpp>
#include <troupe/apps/progress.hpp>
#include <troupe/apps/rank_part.hpp>
#include <troupe/apps/snapshots/snapshot.hpp>
#include <troupe/apps/snapshots/snapshot_writer.hpp>
#include <troupe/apps/training/train_run.hpp>

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace troupe::apps {

/// The snapshots of one run of `troupe train`: the one that it goes on from,
/// and those that it takes. Does nothing without `--snapshots`.
///
/// Thread rule: one thread.
class run_snapshots {
public:
  /// Reads the newest snapshot if `--resume` says so.
  ///
  /// Throws usage_error if the folder has snapshots and the run is not to go on
  /// from them; error(invalid_argument) if they are of another run;
  /// error(io_failure) if nothing can be written there.
  run_snapshots(const train_options& options, const program_bundle& bundle,
                const batch_source& source, const rank_part& part);

  /// Where the run begins.
  run_position start() const {
    return found_ ? found_->position : run_position{};
  }

  /// True if the run goes on from a snapshot, which says on which devices.
  bool has_devices() const noexcept { return found_.has_value(); }
  /// Sets the devices of the snapshot, and what depends on them.
  void choose_devices(executor_options& options) const;
  /// Puts the snapshot's values into `parameters`, before there is an executor.
  /// @param own_devices number of devices of each rank
  void restore(std::size_t own_devices, scope& parameters) const;
  /// Puts the values of the newest snapshot that this run has taken or begun
  /// with into `parameters`, whose replicas are dropped. Returns its position;
  /// nothing if there is none. No rank of the job may be writing a snapshot.
  /// @param own_devices as above
  std::optional<run_position> go_back(std::size_t own_devices,
                                      scope& parameters);
  /// Call it before the first step.
  /// @param options of the executor
  void begin(const executor_options& options, progress& shown);
  /// Call it before that, if the ranks of the job are others than before.
  void begin_epoch();

  /// Takes a snapshot while no step is running. It is written while training
  /// goes on. Notes if one could not be written.
  void take(executor& exe, const run_position& done, progress& shown);
  /// Waits for the last one. Throws error(io_failure) if one could not be
  /// written.
  void require_written();

private:
  const train_options& options_;
  const rank_part& part_;
  run_identity identity_;
  run_devices devices_;
  arena memory_; // of values, also of those that are being written
  std::optional<snapshot> found_;
  std::vector<std::string> notes_; // until there is a place to show them
  std::optional<std::string> failure_;
  std::optional<snapshot_writer> writer_; // uses all others
};

} // namespace troupe::apps
