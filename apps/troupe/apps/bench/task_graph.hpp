// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::apps {

/// A grid of tasks: `steps` rows of up to `width` tasks. A task depends on
/// tasks of the previous row.
/// Source: Slaughter et al., "Task Bench", SC20; patterns as in its
/// core/core.cc.
struct task_pattern {
  std::string name = "stencil_1d";
  std::int64_t width = 16;
  std::int64_t steps = 64;
  std::int64_t radix = 3; ///< for nearest, spread and random_nearest
};

/// Names of all patterns.
std::span<const std::string_view> task_patterns();

/// Tasks and their dependencies. Tasks are numbered row by row, so a task has a
/// higher number than its predecessors.
struct task_graph {
  /// Predecessors of task t: predecessors[first[t]] up to first[t + 1].
  std::vector<std::uint32_t> first{0};
  std::vector<std::uint32_t> predecessors;

  std::size_t tasks() const noexcept { return first.size() - 1; }
  std::size_t edges() const noexcept { return predecessors.size(); }
  std::span<const std::uint32_t> before(std::size_t task) const {
    return std::span{predecessors}.subspan(first[task],
                                           first[task + 1] - first[task]);
  }
  /// For each task, the tasks that wait for it.
  std::vector<std::vector<std::uint32_t>> successors() const;
};

/// Throws error(invalid_argument), naming the option of `bench tasks`, for an
/// unknown pattern, a radix above the width, and a grid without tasks, with
/// more than 2^24 tasks or with more than 2^27 dependencies.
task_graph make_task_graph(const task_pattern& pattern);

} // namespace troupe::apps
