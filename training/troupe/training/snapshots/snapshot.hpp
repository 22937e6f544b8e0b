// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/actors/executor.hpp>
#include <troupe/kernels/io/npz.hpp>
#include <troupe/training/training_loop.hpp>

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

namespace troupe {

/// This process among those of a run.
struct run_rank {
  std::size_t number = 0;
  std::size_t ranks = 1;
};

/// What must be the same in a run that continues another one.
struct run_identity {
  std::string program; ///< a hash of its text
  std::uint64_t seed = 0;
  std::int64_t batch = 0; ///< samples of the first step of an epoch
  std::uint64_t steps_per_epoch = 0;
  std::uint64_t accumulate = 1; ///< steps per update
};

/// The devices of a run, which may have been chosen for it.
struct run_devices {
  std::size_t per_rank = 1;
  std::size_t ranks = 1;
  graph::merge_strategy strategy = graph::merge_strategy::all_reduce;
  bool sync_batch_norm = false;
};

/// All that a training run needs to go on where it was, bit by bit: parameters,
/// optimizer state, statistics, the position in the data and in the sequence of
/// random numbers. Values are plain, in host memory.
struct snapshot {
  run_identity identity;
  run_position position;
  run_devices devices;
  named_tensors values; ///< persistable variables
  /// Statistics that devices other than the first keep of their own samples, by
  /// device of the whole run.
  std::map<std::size_t, named_tensors> of_device;
};

std::string hash_of(const graph::program& p);

/// Copies the values of this rank that a snapshot needs: of the first rank all
/// that it has; of others those that no rank before has. No step may be running
/// on `exe`.
/// @param memory of the copies
void copy_values(const executor& exe, const scope& parameters, run_rank rank,
                 arena& memory, snapshot& into);

/// Puts the values of a snapshot into the scope of an executor to come, which
/// has `own_devices` devices in each rank. If the snapshot is of another number
/// of devices, all devices begin with the statistics of the first one.
void restore_values(const snapshot& from, run_rank rank,
                    std::size_t own_devices, scope& parameters);

/// Throws error(invalid_argument), which names the difference, unless a run
/// with identity `here` can go on from the snapshot.
/// @param name of the snapshot, for the error
void require_same_run(const run_identity& of_snapshot, const run_identity& here,
                      const std::string& name);

} // namespace troupe
