// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/trace/trace.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace troupe::trace {

/// A temporary that held memory.
struct held_memory {
  handle_id variable = no_handle; ///< the first version
  std::uint64_t bytes = 0;
};

/// The memory of temporaries and feeds of a device when it was highest.
struct memory_peak {
  std::size_t device = 0; ///< index into graph_info::devices
  std::uint64_t bytes = 0;
  std::uint64_t time = 0;           ///< in nanoseconds
  std::uint32_t step = 0;           ///< of the op that allocated last
  std::vector<held_memory> holders; ///< the largest first
};

/// The peak of each device on which something was allocated (memory_account
/// says what counts).
std::vector<memory_peak>
find_memory_peaks(std::span<const process_trace> parts);

} // namespace troupe::trace
