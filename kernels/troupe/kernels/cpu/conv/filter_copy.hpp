// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <oneapi/dnnl/dnnl.hpp>

#include <array>
#include <cstdint>
#include <optional>

namespace troupe::cpu {

/// Copies a filter gradient [out, in, height, width], float32, from blocks of
/// 16 x 16 channels (OIhw16i16o), which oneDNN's convolutions write, into the
/// plain layout. oneDNN's own reorder reaches 1 to 4 GB/s. For a pointwise
/// filter with many channels and small images, that takes longer than the
/// multiplication. Thread rule: any number of threads on different memory.
class filter_copy {
public:
  /// Nothing for other layouts, channel counts that are not multiples of 16, or
  /// more than 25 taps.
  static std::optional<filter_copy> between(const dnnl::memory::desc& from,
                                            const dnnl::memory::desc& to);

  void run(const float* from, float* to) const;

private:
  void list_blocks(const float* first, const float** blocks) const;

  std::array<std::int64_t, 4> dims_{};
  std::array<std::int64_t, 4> strides_{}; // between blocks
};

} // namespace troupe::cpu
