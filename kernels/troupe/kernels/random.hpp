// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

namespace troupe {

/// The bijection behind `philox`. It maps four counter words and two key words
/// to four random words.
std::array<std::uint32_t, 4>
philox_4x32_10(std::array<std::uint32_t, 4> counter,
               std::array<std::uint32_t, 2> key) noexcept;

/// Philox 4x32-10: a counter-based generator. Its numbers depend only on key
/// and counter, not on the order in which threads draw them. Dropout therefore
/// gives the same mask on one device and on four.
/// Source: Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC11.
class philox {
public:
  /// @param seed the run's seed
  /// @param stream which sequence of that seed; each op has its own
  /// @param step the training step modulo 2^32; 0 outside a step
  philox(std::uint64_t seed, std::uint32_t stream, std::uint64_t step) noexcept;

  /// The four 32-bit words of block `index`.
  std::array<std::uint32_t, 4> block(std::uint64_t index) const noexcept;
  /// Number `index` of the uniform sequence: a float in [0, 1) with 24 random
  /// bits.
  float uniform(std::uint64_t index) const noexcept;
  /// Number `index` of the standard normal sequence (Box-Muller on separate
  /// blocks).
  float normal(std::uint64_t index) const noexcept;

  ///@{
  /// Numbers 4 * index to 4 * index + 3 of these sequences. Four numbers cost
  /// hardly more than one.
  std::array<float, 4> uniform_block(std::uint64_t index) const noexcept;
  std::array<float, 4> normal_block(std::uint64_t index) const noexcept;
  ///@}

private:
  std::array<std::uint32_t, 2> key_;
  std::array<std::uint32_t, 2> high_; // upper counter words: step and stream
};

/// Reads the numbers of a `philox` one by one. It caches the last block, so
/// consecutive numbers are cheap. Thread rule: one thread at a time.
template <class T>
class block_reader {
public:
  /// A member function of `philox` that returns the four numbers of a block.
  using blocks = std::array<T, 4> (philox::*)(std::uint64_t) const noexcept;

  /// @param of e.g. `&philox::normal_block`
  block_reader(const philox& random, blocks of) noexcept
    : random_(random), of_(of) {}

  /// Number `index` of the sequence.
  T operator()(std::uint64_t index) noexcept {
    if (index / 4 != block_) {
      block_ = index / 4;
      numbers_ = (random_.*of_)(block_);
    }
    return numbers_[index % 4];
  }

private:
  philox random_;
  blocks of_;
  std::uint64_t block_ = ~std::uint64_t{0}; // no block
  std::array<T, 4> numbers_{};
};

/// A 32-bit hash of a name (FNV-1a), stable across runs and machines. Gives
/// each random op its own philox stream.
std::uint32_t stable_hash(const char* text) noexcept;

} // namespace troupe
