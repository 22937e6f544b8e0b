// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/actors/executor.hpp>
#include <troupe/training/snapshots/folder_claim.hpp>
#include <troupe/training/snapshots/snapshot.hpp>
#include <troupe/training/snapshots/snapshot_options.hpp>
#include <troupe/training/snapshots/snapshot_writer.hpp>

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace troupe {

/// The snapshots of one training run: the one that it goes on from, and those
/// that it takes. Does nothing without a folder.
///
/// Thread rule: one thread.
class run_snapshots {
public:
  /// Claims the folder (`folder_claim`), and reads the newest snapshot if the
  /// run goes on from it.
  ///
  /// Throws error(invalid_argument) if the snapshots are of another run, or if
  /// there are some and the run does not go on from them, or if another run
  /// uses the folder; error(io_failure) if nothing can be written there.
  /// @param rank this process among those of the run
  run_snapshots(const snapshot_options& options, run_identity identity,
                run_rank rank = {});

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
  void begin(const executor_options& options);
  /// Call it before that, if the ranks of the job are others than before.
  void begin_epoch(run_rank rank);

  /// Takes a snapshot while no step is running. It is written while training
  /// goes on. Waits for the one before.
  /// @param written can be empty
  void take(executor& exe, const run_position& done,
            snapshot_writer::listener written = {});
  /// Waits for the last one. Throws error(io_failure) if one could not be
  /// written.
  void require_written();

  /// What the user should know, a line each: from which snapshot the run goes
  /// on, which ones cannot be read, and that one could not be written. Each is
  /// returned once.
  std::vector<std::string> take_notes();

private:
  snapshot_options options_;
  run_identity identity_;
  run_rank rank_;
  run_devices devices_;
  arena memory_; // of values, also of those that are being written
  std::optional<snapshot> found_;
  std::vector<std::string> notes_;
  std::optional<std::string> failure_;
  std::optional<folder_claim> claim_;
  std::optional<snapshot_writer> writer_; // uses all others
};

} // namespace troupe
