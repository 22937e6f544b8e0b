// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/kernels/cpu/simd/simd.hpp>

#include <cstdint>

namespace troupe::cpu {

/// The weights of one tap for 16 output and 16 input channels, laid out as in
/// the blocks of oneDNN's convolutions.
struct channel_square {
  static constexpr std::int64_t channels = 16;
  alignas(64) float at[channels][channels];
};

/// The hand-written loops for filters in blocks take up to 25 taps (5x5).
constexpr std::int64_t most_taps = 25;

TROUPE_INLINE channel_square transposed(const channel_square& s) {
  channel_square result;
  for (std::int64_t a = 0; a < channel_square::channels; ++a)
    for (std::int64_t b = 0; b < channel_square::channels; ++b)
      result.at[a][b] = s.at[b][a];
  return result;
}

} // namespace troupe::cpu
