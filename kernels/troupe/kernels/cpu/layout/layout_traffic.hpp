// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace troupe::cpu {

/// The bytes that the calling thread has read and written so far to convert
/// between layouts. A profile takes the difference between two calls.
std::uint64_t layout_traffic() noexcept;

/// Adds to it.
void add_layout_traffic(std::uint64_t bytes) noexcept;

} // namespace troupe::cpu
