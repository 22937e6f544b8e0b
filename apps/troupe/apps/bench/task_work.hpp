// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/apps/bench/task_graph.hpp>

#include <atomic>
#include <cstdint>
#include <memory>

namespace troupe::apps {

/// What every engine does for a task: `grain` rounds of arithmetic and, if
/// wanted, a check that all predecessors have run in this pass.
class task_work {
public:
  task_work(const task_graph& graph, std::int64_t grain, bool check);

  /// Does task `task`. Any thread; each task once in a pass.
  void run(std::uint32_t task) noexcept {
    if (grain_ > 0)
      compute(grain_);
    if (stamps_)
      verify(task);
  }

  /// Before each pass; no task may run.
  void begin_pass() noexcept { ++pass_; }
  /// Predecessors that had not run, and after a pass tasks left out.
  std::uint64_t violations() const noexcept;
  /// Mean number of a task's predecessors that another thread had run, over all
  /// checked passes: what came from another core's cache.
  double hops_per_task() const noexcept;

  /// 128 floating-point operations for each of `rounds`, in registers.
  static void compute(std::int64_t rounds) noexcept;

private:
  void verify(std::uint32_t task) noexcept;

  const task_graph& graph_;
  std::int64_t grain_;
  std::uint32_t pass_ = 0;
  /// The pass in which a task last ran. Relaxed: what orders a task behind its
  /// predecessors is the engine's affair, which this checks.
  std::unique_ptr<std::atomic<std::uint32_t>[]> stamps_;
  /// The thread that last ran a task. Relaxed, as `stamps_`.
  std::unique_ptr<std::atomic<std::uint32_t>[]> threads_;
  std::atomic<std::uint64_t> violations_{0};
  std::atomic<std::uint64_t> hops_{0};
};

} // namespace troupe::apps
