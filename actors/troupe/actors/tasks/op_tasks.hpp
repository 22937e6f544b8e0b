// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/actors/engine/storage.hpp>
#include <troupe/actors/tasks/op_task.hpp>
#include <troupe/actors/tasks/task_memory.hpp>
#include <troupe/graph/ssa_graph.hpp>
#include <troupe/kernels/kernel.hpp>
#include <troupe/kernels/part_runner.hpp>

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::actors {

/// A storage in a slot of an op.
struct task_argument {
  std::string_view slot; ///< of the op's description, which outlives the task
  storage* value;        ///< null: the program names nothing here
  /// It is read as it was so many steps ago.
  std::uint32_t distance = 0;
};

/// Where a task runs. All of it outlives the task.
struct task_place {
  device& on;
  std::size_t device_index;
  stream& queue;
  /// One per slot, with its devices: what a kernel sees of each is prepared.
  std::span<const std::unique_ptr<step_state>> steps;
  task_memory& memory; ///< for what a run reads
};

/// Runs the kernel of one op of the program on one device.
///
/// What the kernel is given is prepared once per slot, not in each step.
/// @param desc outlives the task
/// @param check_nan throw error(not_finite) when an output is not finite
///
/// In the first steps an op that reads what a step before them would have
/// written does nothing, unless it takes inputs without a value.
///
/// A device without samples skips forward and backward ops, and other ops for
/// which an input was not computed; so it contributes nothing, whatever the
/// kernel would do with an empty tensor.
std::unique_ptr<op_task>
make_computation_task(const graph::op_desc& desc, const task_place& place,
                      std::unique_ptr<kernel> code,
                      std::span<const task_argument> inputs,
                      std::span<const task_argument> outputs, bool check_nan);

/// Writes the weight of the device's shard, n_i/n or 1 as the attribute
/// "gradient_scale" says, into loss@GRAD; its shape and dtype are attributes,
/// too (those of the program's fill_constant).
std::unique_ptr<op_task> make_scale_loss_grad_task(const graph::op_desc& desc,
                                                   device& on,
                                                   std::size_t device_index,
                                                   const storage& out);

/// What a collective works on: the same variable on each device.
struct collective_group {
  std::vector<storage> inputs;  ///< one per rank
  std::vector<storage> outputs; ///< one per rank; reduce: of the root alone
};

/// all_reduce, reduce or broadcast of one or several variables in turn. Dense
/// values are summed in rank order; row-sparse ones are joined and duplicate
/// rows merged. Large tensors are cut in up to `workers` pieces that `helpers`
/// run.
std::unique_ptr<op_task>
make_collective_task(graph::op_kind kind, std::size_t root,
                     std::vector<device*> ranks,
                     std::vector<collective_group> groups, part_runner* helpers,
                     std::size_t workers, bool deterministic);

/// Copies a variable into `step_state::fetched[index]`, if the step wants it.
std::unique_ptr<op_task> make_fetch_task(device& on, std::size_t index,
                                         const storage& from, arena& host);

/// Throws error(not_finite), naming `name`, if a float32 or float64 value (or
/// the values of selected rows) has a NaN or an infinity.
void require_finite(const variable& value, std::string_view name);

} // namespace troupe::actors
