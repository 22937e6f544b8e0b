// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/actors/outside_op.hpp>
#include <troupe/actors/tasks/op_tasks.hpp>
#include <troupe/kernels/kernel.hpp>

#include <memory>
#include <span>
#include <string>

namespace troupe::actors {

/// A kernel that takes the tensors of an answer as the outputs of its op.
class answer_kernel : public kernel {
public:
  /// The answer for the next run.
  void set(slot_tensors outputs) { outputs_ = std::move(outputs); }
  /// Throws error(kernel_failure) if the answer lacks an output, and
  /// error(invalid_argument) if an output is not in memory that the device can
  /// use.
  void run(kernel_context& ctx) override;

private:
  slot_tensors outputs_;
};

/// Makes the task of an op that is computed outside of the graph. It ends later
/// (wiring_options::ends_later).
/// @param desc outlives the task
/// @param takes runs `answers`, perhaps with checks
std::unique_ptr<op_task>
make_outside_task(const graph::op_desc& desc, const task_place& place,
                  std::shared_ptr<outside_op> computes,
                  std::unique_ptr<kernel> takes, answer_kernel& answers,
                  std::span<const task_argument> inputs,
                  std::span<const task_argument> outputs);

} // namespace troupe::actors
