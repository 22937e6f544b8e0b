// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/apps/bench/task_graph.hpp>

#include <atomic>
#include <cstdint>
#include <memory>

namespace troupe::apps {

/// The work of a task, the same for all engines: `grain` rounds of arithmetic
/// and, with `check`, a check that all predecessors have run in this pass.
class task_work {
public:
  task_work(const task_graph& graph, std::int64_t grain, bool check);

  /// Runs task `task`. Called by any thread, once per task and pass.
  void run(std::uint32_t task) noexcept {
    if (grain_ > 0)
      compute(grain_);
    if (stamps_)
      verify(task);
  }

  /// Call it before each pass, while no task runs.
  void begin_pass() noexcept { ++pass_; }
  /// Number of predecessors that had not run in time, over all passes, plus
  /// tasks that did not run in the last pass. Call it after a pass.
  std::uint64_t violations() const noexcept;
  /// Mean number of a task's predecessors that ran on another thread, over all
  /// checked passes: inputs from another core's cache.
  double hops_per_task() const noexcept;

  /// Computes `rounds` rounds of 128 floating-point operations, in registers.
  static void compute(std::int64_t rounds) noexcept;

private:
  void verify(std::uint32_t task) noexcept;

  const task_graph& graph_;
  std::int64_t grain_;
  std::uint32_t pass_ = 0;
  /// The pass in which a task last ran. Relaxed: the engine must order a task
  /// after its predecessors, and this is what the check tests.
  std::unique_ptr<std::atomic<std::uint32_t>[]> stamps_;
  /// The thread that last ran a task. Relaxed, like `stamps_`.
  std::unique_ptr<std::atomic<std::uint32_t>[]> threads_;
  std::atomic<std::uint64_t> violations_{0};
  std::atomic<std::uint64_t> hops_{0};
};

} // namespace troupe::apps
