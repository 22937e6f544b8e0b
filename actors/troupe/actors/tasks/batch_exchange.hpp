// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/actors/engine/storage.hpp>
#include <troupe/actors/placement.hpp>
#include <troupe/actors/tasks/collective_ranks.hpp>
#include <troupe/actors/tasks/op_task.hpp>
#include <troupe/kernels/device.hpp>
#include <troupe/kernels/memory/arena.hpp>

#include <cstddef>
#include <memory>

namespace troupe::actors {

/// Where the rank of a device takes part in an exchange. It and everything in
/// it must outlive the tasks.
struct exchange_place {
  const collective_ranks& ranks; ///< joined before the first step
  device& on;
  std::size_t device_index;
  arena& memory; ///< host memory, best that of the group
  const placement& where;

  /// True for one device of each process, which writes what concerns all
  /// devices to the step's state.
  bool reports() const { return where.replica_of(device_index) == 0; }
  /// True if this rank tells the process about the samples of a device. Those
  /// of other processes matter to ops that have been moved here.
  bool tells_of(std::size_t device) const {
    return device == device_index || (reports() && !where.is_here(device));
  }
};

/// Makes the task of one rank of count_samples. Before, the shards of a step
/// tell only how many samples the devices of this process have. Afterwards the
/// shard of this rank's device also tells which samples of the batch these are,
/// and how many the batch has, and so do the shards of devices in other
/// processes; `step_state::samples` has all numbers. The batch consists of the
/// devices' shards in the order of devices.
///
/// The step fails with error(invalid_argument) if no device has samples.
std::unique_ptr<op_task> make_count_samples_task(const exchange_place& place);

/// Makes the task of one rank of gather_losses, which sets
/// `step_state::losses`.
/// @param loss the variable on this rank's device; without a value, the loss is
///   NaN
std::unique_ptr<op_task> make_gather_losses_task(const exchange_place& place,
                                                 const storage& loss);

} // namespace troupe::actors
