// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/apps/bench/task_graph.hpp>
#include <troupe/graph/program.hpp>
#include <troupe/kernels/kernel.hpp>

#include <cstdint>
#include <functional>
#include <memory>

namespace troupe::apps {

/// A program with one op per task, which reads the outputs of its predecessors.
graph::program make_task_program(const task_graph& tasks);

/// Makes the kernel of a task by its number.
using task_kernel_maker =
  std::function<std::unique_ptr<kernel>(std::uint32_t task)>;

/// The kernels of such a program's ops.
std::shared_ptr<const kernel_table> make_task_kernels(task_kernel_maker make);

} // namespace troupe::apps
