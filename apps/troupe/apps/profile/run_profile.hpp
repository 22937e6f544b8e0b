// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/actors/executor.hpp>
#include <troupe/apps/profile/op_profile.hpp>

#include <cstddef>
#include <cstdint>

namespace troupe::apps {

/// The profile of one run of `troupe train`. The first two steps do not count,
/// because kernels choose their code in them. The last step always counts.
class run_profile {
public:
  /// Changes `run` so that an executor with these options reports to this
  /// profile. The profile must outlive the executor.
  /// @param steps number of steps of the run
  run_profile(std::uint64_t steps, executor_options& run);

  /// Call it before the first step.
  void begin(executor& exe);
  /// Call it after each step, while the executor lives.
  void take() { profile_.take(); }

  /// Measures the machine (`measure_roofline`) and writes the profile to
  /// stdout: a table, or a JSON object in one line. Call it after the executor
  /// is destroyed.
  /// @param batch samples per step
  void print(const graph::program& program, std::int64_t batch,
             bool json) const;

private:
  std::size_t workers_;
  std::size_t devices_;
  op_profile profile_;
};

} // namespace troupe::apps
