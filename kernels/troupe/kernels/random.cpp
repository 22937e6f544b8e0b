// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/random.hpp>

#include <cmath>
#include <numbers>

namespace troupe {

namespace {

struct product {
  std::uint32_t high;
  std::uint32_t low;
};

product multiply(std::uint32_t a, std::uint32_t b) noexcept {
  auto both = static_cast<std::uint64_t>(a) * b;
  return {static_cast<std::uint32_t>(both >> 32),
          static_cast<std::uint32_t>(both)};
}

std::uint32_t low_word(std::uint64_t value) noexcept {
  return static_cast<std::uint32_t>(value);
}

std::uint32_t high_word(std::uint64_t value) noexcept {
  return static_cast<std::uint32_t>(value >> 32);
}

// The first block that `normal` uses; `uniform` cannot reach it.
constexpr std::uint64_t normal_blocks = std::uint64_t{1} << 63;

float uniform_of(std::uint32_t word) noexcept {
  return static_cast<float>(word >> 8) * 0x1p-24f;
}

// Box-Muller.
std::array<float, 2> normal_pair(std::uint32_t a, std::uint32_t b) noexcept {
  const auto radius_uniform = (a + 1.0) * 0x1p-32; // (0, 1]
  const auto radius =
    std::sqrt(-2 * std::log(static_cast<float>(radius_uniform)));
  const auto angle = uniform_of(b) * 2 * std::numbers::pi_v<float>;
  return {radius * std::cos(angle), radius * std::sin(angle)};
}

} // namespace

std::array<std::uint32_t, 4>
philox_4x32_10(std::array<std::uint32_t, 4> counter,
               std::array<std::uint32_t, 2> key) noexcept {
  for (int round = 0; round < 10; ++round) {
    auto first = multiply(0xd251'1f53, counter[0]);
    auto second = multiply(0xcd9e'8d57, counter[2]);
    counter = {second.high ^ counter[1] ^ key[0], second.low,
               first.high ^ counter[3] ^ key[1], first.low};
    key[0] += 0x9e37'79b9; // golden ratio
    key[1] += 0xbb67'ae85; // sqrt(3) - 1
  }
  return counter;
}

philox::philox(std::uint64_t seed, std::uint32_t stream,
               std::uint64_t step) noexcept
  : key_{low_word(seed), high_word(seed)}, high_{low_word(step), stream} {}

std::array<std::uint32_t, 4> philox::block(std::uint64_t index) const noexcept {
  return philox_4x32_10({low_word(index), high_word(index), high_[0], high_[1]},
                        key_);
}

float philox::uniform(std::uint64_t index) const noexcept {
  return uniform_of(block(index / 4)[index % 4]);
}

float philox::normal(std::uint64_t index) const noexcept {
  const auto words = block(normal_blocks | index / 4);
  const auto pair = index % 4 / 2 * 2;
  return normal_pair(words[pair], words[pair + 1])[index % 2];
}

std::array<float, 4> philox::uniform_block(std::uint64_t index) const noexcept {
  const auto words = block(index);
  return {uniform_of(words[0]), uniform_of(words[1]), uniform_of(words[2]),
          uniform_of(words[3])};
}

std::array<float, 4> philox::normal_block(std::uint64_t index) const noexcept {
  const auto words = block(normal_blocks | index);
  const auto first = normal_pair(words[0], words[1]);
  const auto second = normal_pair(words[2], words[3]);
  return {first[0], first[1], second[0], second[1]};
}

std::uint32_t stable_hash(const char* text) noexcept {
  std::uint32_t hash = 2166136261u;
  for (; *text; ++text)
    hash = (hash ^ static_cast<unsigned char>(*text)) * 16777619u;
  return hash;
}

} // namespace troupe
