// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace troupe::actors {

/// What the threads of this process have had of the machine's cores, all
/// together.
struct core_times {
  std::uint64_t ran_ns = 0;
  std::uint64_t waited_ns = 0; ///< ready to run, without a core

  /// Until now; zeros if the system does not tell
  /// (/proc/self/task/N/schedstat).
  static core_times now();
};

} // namespace troupe::actors
