// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/kernels/cpu/winograd/winograd_loops.hpp>

#include <cstdint>

namespace troupe::cpu {

struct conv_problem;

/// A filter [out, in, 3, 3] that is read or written, plain or in blocks
/// (filter_blocks.hpp), as vectors of taps. Thread rule: any number of threads
/// on different buffers.
class winograd_filter_layout {
public:
  winograd_filter_layout(const winograd_loops& loops, const conv_problem& p);

  /// Floats of a buffer for filters between two blocks of channels.
  std::int64_t buffer_size() const noexcept;

  /// A vector of filters, output block `out`, for each channel of input block
  /// `in`. They may lie in `buffer`.
  winograd_block<const float> forward(const float* filter, std::int64_t out,
                                      std::int64_t in, float* buffer) const;
  /// The way back, with taps turned by 180 degrees: a vector of the channels of
  /// input block `in` for each filter of output block `out`.
  winograd_block<const float> backward(const float* filter, std::int64_t out,
                                       std::int64_t in, float* buffer) const;

  /// Where vectors like those of `forward` are to be written; `wrote` follows.
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
