// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace troupe::actors {

/// What the threads of this process have had of the machine's cores, all
/// together.
struct core_times {
  std::uint64_t ran_ns = 0;
  std::uint64_t waited_ns = 0; ///< ready to run, without a core
  /// Time of the machine's cores that others of its host took, if it is a
  /// virtual one: of all processes together.
  std::uint64_t stolen_ns = 0;

  /// Until now; zeros if the system does not tell
  /// (/proc/self/task/N/schedstat, /proc/stat).
  static core_times now();
  /// What has come since `before`; not less than zero.
  core_times since(const core_times& before) const noexcept;
};

} // namespace troupe::actors
