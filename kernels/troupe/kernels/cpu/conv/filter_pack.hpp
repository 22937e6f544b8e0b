// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <oneapi/dnnl/dnnl.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>

namespace troupe::cpu {

/// Packs a filter [out, in, height, width], float32, plain or in blocks 16i16o
/// (filter_blocks.hpp), into the blocks of 16 x 16 channels that oneDNN's
/// convolutions read, in float32 (16i16o and 16o16i) or rounded to bfloat16, to
/// nearest, in pairs of channels (8i16o2i and 8o16i2o). The library's own
/// reorder goes at 3 to 6 GB/s for input gradients of pointwise filters and for
/// all larger ones, a fifth of what memory gives. Thread rule: any number of
/// threads on different memory.
class filter_pack {
public:
  /// Nothing for other layouts, channels that do not fill their blocks, and
  /// more than 25 taps.
  static std::optional<filter_pack> between(const dnnl::memory::desc& from,
                                            const dnnl::memory::desc& to);

  std::size_t packed_bytes() const noexcept;
  /// Blocks of output channels, which may be packed apart.
  std::int64_t out_blocks() const noexcept;

  /// Packs `count` blocks of output channels from `first` on. Pointers are to
  /// the whole filter.
  void run(const float* from, void* to, std::int64_t first,
           std::int64_t count) const;
  /// The same for all blocks.
  void run(const float* from, void* to) const {
    run(from, to, 0, out_blocks());
  }

  bool operator==(const filter_pack&) const = default;

private:
  // From block to block, in elements.
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
  bool transposes_ = false;  // an output channel's values lie apart
  bool rounds_ = false;
};

} // namespace troupe::cpu
