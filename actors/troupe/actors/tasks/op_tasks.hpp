// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/actors/engine/storage.hpp>
#include <troupe/actors/tasks/collective_ranks.hpp>
#include <troupe/actors/tasks/op_task.hpp>
#include <troupe/actors/tasks/task_memory.hpp>
#include <troupe/comm/communicator.hpp>
#include <troupe/graph/ssa_graph.hpp>
#include <troupe/kernels/kernel.hpp>

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::actors {

/// An argument of an op.
struct task_argument {
  storage* value; ///< null: the program names no variable here
  /// The value of this many steps ago is read.
  std::uint32_t distance = 0;
};

/// Where tasks run. It and everything in it must outlive the tasks.
struct task_place {
  device& on;
  std::size_t shard; ///< the device on whose samples it works
  stream& queue;
  std::size_t slots;   ///< number of step slots
  task_memory& memory; ///< for data that a run reads
};

/// Makes a task that runs the kernel of one op of the program on one device.
///
/// @param desc outlives the task
/// @param inputs,outputs one per name in the slots of `desc`, in that order
/// @param check_nan throw error(not_finite) when an output is not finite
///
/// In the first steps, an op with a delayed input that has no value yet does
/// nothing, unless it accepts inputs without a value.
///
/// A device without samples skips forward and backward ops, except those that
/// accumulate gradients, and other ops with an input that was not computed. It
/// therefore contributes nothing, regardless
/// of what kernels do with empty tensors.
std::unique_ptr<op_task>
make_computation_task(const graph::op_desc& desc, const task_place& place,
                      std::unique_ptr<kernel> code,
                      std::span<const task_argument> inputs,
                      std::span<const task_argument> outputs, bool check_nan);

/// Makes a task that writes the weight of the device's shard into loss@GRAD:
/// n_i/n or 1, depending on the attribute "gradient_scale". Shape and dtype are
/// attributes too, taken from the program's fill_constant. The value is copied
/// to the device on `queue`, the stream that the task runs on.
std::unique_ptr<op_task> make_scale_loss_grad_task(const graph::op_desc& desc,
                                                   device& on, stream& queue,
                                                   std::size_t device_index,
                                                   const storage& out);

/// The variable that a collective merges, on each device.
struct collective_group {
  std::vector<storage> inputs;  ///< one per rank
  std::vector<storage> outputs; ///< one per rank; reduce: only that of the root
};

/// Makes a task for all_reduce, reduce or broadcast of one or several variables
/// in turn, on all devices at once. Dense values are summed in rank order.
/// Row-sparse values are concatenated.
std::unique_ptr<op_task>
make_collective_task(graph::op_kind kind, std::size_t root,
                     std::vector<device*> ranks,
                     std::vector<collective_group> groups,
                     const comm::local_group_options& options);

/// Makes the task of one rank of such a collective. It completes when all ranks
/// have arrived.
/// @param ranks the group, which is joined before the first step; must outlive
///   the task
/// @param inputs empty for a rank that receives a broadcast
/// @param outputs empty for a rank that gets no result of a reduce
std::unique_ptr<op_task> make_rank_task(graph::op_kind kind, std::size_t root,
                                        const collective_ranks& ranks,
                                        std::size_t device,
                                        std::vector<storage> inputs,
                                        std::vector<storage> outputs);

/// Makes a task that copies a variable to `step_state::fetched[index]` if the
/// step requests it. The copy is queued on `queue`, the stream that the task
/// runs on.
std::unique_ptr<op_task> make_fetch_task(device& on, stream& queue,
                                         std::size_t index, const storage& from,
                                         arena& host);

/// Throws error(not_finite), naming `name`, if a float32 or float64 value (or
/// the values of selected rows) has a NaN or an infinity.
void require_finite(const variable& value, std::string_view name);

} // namespace troupe::actors
