// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <oneapi/dnnl/dnnl.hpp>

#include <array>
#include <cstdint>
#include <optional>

namespace troupe::cpu {

/// Copies a filter's gradient [out, in, height, width] from the blocks of 16 x
/// 16 channels that oneDNN's convolutions make (OIhw16i16o) into the plain
/// layout, float32. The library's own reorder goes at 1 to 4 GB/s, which takes
/// longer than the product of a pointwise filter with many channels and small
/// images. Thread rule: any number of threads on different memory.
class filter_copy {
public:
  /// Nothing for other layouts, channels that do not fill their blocks, and
  /// more than 25 taps.
  static std::optional<filter_copy> between(const dnnl::memory::desc& from,
                                            const dnnl::memory::desc& to);

  void run(const float* from, float* to) const;

private:
  void list_blocks(const float* first, const float** blocks) const;

  std::array<std::int64_t, 4> dims_{};
  std::array<std::int64_t, 4> strides_{}; // from block to block, in elements
};

} // namespace troupe::cpu
