// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace troupe::cpu {

/// The sequence of `troupe::philox(seed, stream, step)`, many numbers at a
/// time.
struct philox_sequence {
  std::uint64_t seed = 0;
  std::uint32_t stream = 0;
  std::uint64_t step = 0;
};

/// mask[i] = 1 if philox::uniform(first + i) >= probability, else 0: the
/// elements that dropout keeps.
void draw_mask(const philox_sequence& sequence, std::uint64_t first,
               float probability, std::uint8_t* mask, std::int64_t n);

} // namespace troupe::cpu
