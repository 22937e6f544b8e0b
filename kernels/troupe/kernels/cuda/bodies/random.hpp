// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/kernels/cuda/bodies/body.hpp>

namespace troupe::cuda {

/// The sequence of random numbers of `troupe::philox`, with the same numbers.
/// Source: Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC11.
struct philox_numbers {
  std::uint64_t seed;
  std::uint32_t stream;
  std::uint32_t step;

  /// Number `index` of the uniform sequence, in [0, 1).
  TROUPE_BODY float uniform(std::uint64_t index) const {
    std::uint32_t word[4] = {low(index / 4), high(index / 4), step, stream};
    std::uint32_t key0 = low(seed), key1 = high(seed);
    for (int round = 0; round < 10; ++round) {
      const auto first = std::uint64_t{0xd2511f53} * word[0];
      const auto second = std::uint64_t{0xcd9e8d57} * word[2];
      word[0] = high(second) ^ word[1] ^ key0;
      word[1] = low(second);
      word[2] = high(first) ^ word[3] ^ key1;
      word[3] = low(first);
      key0 += 0x9e3779b9;
      key1 += 0xbb67ae85;
    }
    return static_cast<float>(word[index % 4] >> 8) * (1.0f / 16777216.0f);
  }

  TROUPE_BODY static std::uint32_t low(std::uint64_t x) {
    return static_cast<std::uint32_t>(x);
  }
  TROUPE_BODY static std::uint32_t high(std::uint64_t x) {
    return static_cast<std::uint32_t>(x >> 32);
  }
};

/// mask[i] = 1 with probability 1 - p, else 0; out = x * factor where it is 1,
/// else 0
struct drop_out {
  static constexpr const char* name = "dropout";
  static constexpr int phases = 1;
  using shared = nothing_shared;
  struct arguments {
    const float* x;
    float* out;
    std::uint8_t* mask;
    std::int64_t count;
    std::uint64_t first; ///< random number of element 0
    philox_numbers random;
    /// In GPU memory: what `random.step` really is. Null: what it says.
    const std::uint32_t* step;
    float probability; ///< p
    float factor;
  };
  TROUPE_BODY static void run(const place& at, const arguments& a, shared&,
                              int) {
    auto random = a.random;
    if (a.step)
      random.step = *a.step;
    for (auto i = at.index(); i < a.count; i += at.count()) {
      const auto number =
        random.uniform(a.first + static_cast<std::uint64_t>(i));
      const bool kept = number >= a.probability;
      a.mask[i] = kept ? 1 : 0;
      a.out[i] = kept ? a.x[i] * a.factor : 0.0f;
    }
  }
};

/// out[i] = x[i] * factor where mask[i] is not 0, else 0
struct apply_mask {
  static constexpr const char* name = "dropout_grad";
  static constexpr int phases = 1;
  using shared = nothing_shared;
  struct arguments {
    const float* x;
    const std::uint8_t* mask;
    float* out;
    std::int64_t count;
    float factor;
  };
  TROUPE_BODY static void run(const place& at, const arguments& a, shared&,
                              int) {
    for (auto i = at.index(); i < a.count; i += at.count())
      a.out[i] = a.mask[i] != 0 ? a.x[i] * a.factor : 0.0f;
  }
};

} // namespace troupe::cuda
