// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/kernels/memory/arena.hpp>
#include <troupe/kernels/tensor.hpp>

#include <cstring>

namespace troupe::comm {

/// The same value, layout and levels in other memory. The value is in host
/// memory. Throws error(out_of_memory).
inline tensor copied_to(arena& memory, const tensor& value) {
  tensor copy{value.dims(), value.type(), memory.allocate(value.bytes()),
              value.format()};
  if (value.bytes() > 0)
    std::memcpy(copy.raw(), value.raw(), value.bytes());
  copy.set_levels(value.levels());
  return copy;
}

} // namespace troupe::comm
