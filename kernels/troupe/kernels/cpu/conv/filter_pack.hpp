// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <oneapi/dnnl/dnnl.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>

namespace troupe::cpu {

/// Packs a filter [out, in, height, width], float32, plain or in blocks 16i16o
/// (filter_blocks.hpp), into the blocks of 16 x 16 channels that oneDNN's
/// convolutions read: float32 (16i16o or 16o16i), or pairs of channels rounded
/// to the nearest bfloat16 (8i16o2i or 8o16i2o). oneDNN's own reorder reaches 3
/// to 6 GB/s for all filters larger than 1x1 and for input gradients of
/// pointwise ones, a fifth of the memory bandwidth. Thread rule: any number of
/// threads on different memory.
class filter_pack {
public:
  /// Nothing for other layouts, channel counts that are not multiples of 16, or
  /// more than 25 taps.
  static std::optional<filter_pack> between(const dnnl::memory::desc& from,
                                            const dnnl::memory::desc& to);

  std::size_t packed_bytes() const noexcept;
  /// The number of blocks of output channels. Each can be packed on its own.
  std::int64_t out_blocks() const noexcept;

  /// Packs `count` blocks of output channels from `first` on. Both pointers are
  /// to the beginning of the whole filter.
  void run(const float* from, void* to, std::int64_t first,
           std::int64_t count) const;
  /// Packs all blocks.
  void run(const float* from, void* to) const {
    run(from, to, 0, out_blocks());
  }

  bool operator==(const filter_pack&) const = default;

private:
  // Strides between blocks, in elements.
  struct block_steps {
    std::int64_t out = 0;
    std::int64_t in = 0;

    bool operator==(const block_steps&) const = default;
  };

  template <class Element>
  void pack_blocks(const float* from, Element* to, std::int64_t first,
                   std::int64_t count) const;

  std::int64_t out_ = 0;
  std::int64_t in_ = 0;
  std::int64_t taps_ = 1;
  block_steps from_;
  block_steps to_;
  bool from_blocks_ = false; // 16i16o; else plain
  // packed blocks are [in][out], plain filters [out][in]
  bool transposes_ = false;
  bool rounds_ = false;
};

} // namespace troupe::cpu
