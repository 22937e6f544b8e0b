// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace troupe::cpu {

/// Bytes that the calling thread has read and written so far to bring values
/// from one layout into another; a profile takes the difference.
std::uint64_t layout_traffic() noexcept;

/// Adds to it.
void add_layout_traffic(std::uint64_t bytes) noexcept;

} // namespace troupe::cpu
