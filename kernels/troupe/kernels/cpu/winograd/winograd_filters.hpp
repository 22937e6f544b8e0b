// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/kernels/cpu/winograd/winograd_loops.hpp>

#include <cstdint>

namespace troupe::cpu {

struct conv_problem;

/// Reads or writes a filter [out, in, 3, 3], plain or in blocks
/// (filter_blocks.hpp), as vectors of taps. Thread rule: any number of threads
/// on different buffers.
class winograd_filter_layout {
public:
  winograd_filter_layout(const winograd_loops& loops, const conv_problem& p);

  /// Floats of a buffer for the filters between two blocks of channels.
  std::int64_t buffer_size() const noexcept;

  /// For each channel of input block `in`, a vector with the filters of output
  /// block `out`. The result may point into `buffer`.
  winograd_block<const float> forward(const float* filter, std::int64_t out,
                                      std::int64_t in, float* buffer) const;
  /// For the input gradient, with the taps turned by 180 degrees: for each
  /// filter of output block `out`, a vector with the channels of input block
  /// `in`.
  winograd_block<const float> backward(const float* filter, std::int64_t out,
                                       std::int64_t in, float* buffer) const;

  /// Where to write vectors like those of `forward`; call `wrote` afterwards.
  winograd_block<float> begin(float* filter, std::int64_t out, std::int64_t in,
                              float* buffer) const;
  void wrote(float* filter, std::int64_t out, std::int64_t in,
             const float* buffer) const;

private:
  std::int64_t offset(std::int64_t out, std::int64_t in) const noexcept;

  const winograd_loops& loops_;
  std::int64_t in_channels_;
  bool in_blocks_;
};

} // namespace troupe::cpu
