// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/actors/executor.hpp>
#include <troupe/apps/profile/op_profile.hpp>

#include <cstddef>
#include <cstdint>

namespace troupe::apps {

/// The profile of one run of `troupe train`. The first two steps do not count,
/// if there are more: kernels choose their code in them.
class run_profile {
public:
  /// Makes an executor with these options tell the profile, which outlives it.
  /// @param steps of the run
  run_profile(std::uint64_t steps, executor_options& run);

  /// Call it before the first step.
  void begin(const executor& exe);
  /// Call it after each step.
  void take(executor& exe) { profile_.take(exe.trace()); }

  /// Measures the machine (0.3 s) and writes the profile to stdout: a table, or
  /// a JSON object in a line. Call it when the executor has gone.
  /// @param batch samples of a step
  void print(const graph::program& program, std::int64_t batch,
             bool json) const;

private:
  std::size_t workers_;
  std::size_t devices_;
  op_profile profile_;
};

} // namespace troupe::apps
