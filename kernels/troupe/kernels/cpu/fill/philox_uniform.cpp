// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/cpu/fill/philox_uniform.hpp>

#include <troupe/kernels/cpu/simd/simd.hpp>

#include <troupe/kernels/random.hpp>

#include <algorithm>

namespace troupe::cpu {

namespace {

// How many blocks of four words are drawn together.
constexpr std::int64_t lanes = 64;

// Writes the mask for `lanes` blocks from block `first` on; the low word of the
// counter must not overflow within them. The rounds are those of
// philox_4x32_10, one block per lane. Source: Salmon et al., "Parallel random
// numbers: as easy as 1, 2, 3", SC11.
TROUPE_SIMD void mask_of_blocks(const philox_sequence& s, std::uint64_t first,
                                float probability, std::uint8_t* mask) {
  const auto low = static_cast<std::uint32_t>(first);
  const auto high = static_cast<std::uint32_t>(first >> 32);
#pragma omp simd
  for (std::int64_t lane = 0; lane < lanes; ++lane) {
    std::uint32_t c0 = low + static_cast<std::uint32_t>(lane);
    std::uint32_t c1 = high;
    std::uint32_t c2 = static_cast<std::uint32_t>(s.step);
    std::uint32_t c3 = s.stream;
    std::uint32_t k0 = static_cast<std::uint32_t>(s.seed);
    std::uint32_t k1 = static_cast<std::uint32_t>(s.seed >> 32);
    for (int round = 0; round < 10; ++round) {
      const std::uint64_t a = std::uint64_t{0xd2511f53} * c0;
      const std::uint64_t b = std::uint64_t{0xcd9e8d57} * c2;
      c0 = static_cast<std::uint32_t>(b >> 32) ^ c1 ^ k0;
      c1 = static_cast<std::uint32_t>(b);
      c2 = static_cast<std::uint32_t>(a >> 32) ^ c3 ^ k1;
      c3 = static_cast<std::uint32_t>(a);
      k0 += 0x9e3779b9;
      k1 += 0xbb67ae85;
    }
    const auto kept = [probability](std::uint32_t word) {
      const auto bits = static_cast<std::int32_t>(word >> 8);
      return static_cast<std::uint8_t>(static_cast<float>(bits) * 0x1p-24f
                                       >= probability);
    };
    mask[4 * lane] = kept(c0);
    mask[4 * lane + 1] = kept(c1);
    mask[4 * lane + 2] = kept(c2);
    mask[4 * lane + 3] = kept(c3);
  }
}

// One element at a time, for the ends of the range that do not fill `lanes`
// blocks.
void mask_of_elements(const philox_sequence& s, std::uint64_t first,
                      float probability, std::uint8_t* mask, std::int64_t n) {
  const philox random(s.seed, s.stream, s.step);
  for (std::int64_t i = 0; i < n; ++i)
    mask[i] =
      random.uniform(first + static_cast<std::uint64_t>(i)) >= probability;
}

bool overflows_within_group(std::uint64_t block) {
  return static_cast<std::uint32_t>(block) > ~std::uint32_t{0} - lanes;
}

} // namespace

void draw_mask(const philox_sequence& sequence, std::uint64_t first,
               float probability, std::uint8_t* mask, std::int64_t n) {
  constexpr std::int64_t group = 4 * lanes;
  const auto head =
    std::min<std::int64_t>(n, static_cast<std::int64_t>((4 - first % 4) % 4));
  mask_of_elements(sequence, first, probability, mask, head);
  for (std::int64_t i = head; i < n; i += group) {
    const std::uint64_t at = first + static_cast<std::uint64_t>(i);
    if (n - i < group || overflows_within_group(at / 4))
      mask_of_elements(sequence, at, probability, mask + i,
                       std::min(group, n - i));
    else
      mask_of_blocks(sequence, at / 4, probability, mask + i);
  }
}

} // namespace troupe::cpu
