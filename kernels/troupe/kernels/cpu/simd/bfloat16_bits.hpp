// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/kernels/cpu/simd/simd.hpp>

#include <cstdint>

namespace troupe::cpu {

/// The upper half of a float's bits, rounded to nearest, ties to even; NaN
/// stays NaN. Equal to bfloat16(float), but without a branch.
TROUPE_INLINE std::uint32_t rounded_half(std::uint32_t bits) {
  const std::uint32_t near = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  const std::uint32_t quiet = (bits >> 16) | 0x40u;
  return (bits & 0x7fffffffu) > 0x7f800000u ? quiet : near;
}

} // namespace troupe::cpu
