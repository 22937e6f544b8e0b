// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/memory/shared_memory.hpp>

#include <algorithm>

namespace troupe {

bool share_memory(std::span<const device_id> devices) noexcept {
  return std::ranges::all_of(
    devices, [](device_id d) { return d.kind == device_kind::cpu; });
}

} // namespace troupe
