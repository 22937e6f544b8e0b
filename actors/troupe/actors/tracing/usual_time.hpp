// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>

namespace troupe {

/// How long an op usually takes. Times that nobody knows are 0.
struct usual_time {
  std::chrono::nanoseconds median{}; ///< in this process
  /// The median of the rank that is the fastest at it.
  std::chrono::nanoseconds fastest{};
  std::size_t fastest_rank = 0;
};

} // namespace troupe
