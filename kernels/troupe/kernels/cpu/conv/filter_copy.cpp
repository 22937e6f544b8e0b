// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/cpu/conv/filter_copy.hpp>

#include <troupe/kernels/cpu/conv/channel_square.hpp>
#include <troupe/kernels/cpu/conv/filter_layout.hpp>
#include <troupe/kernels/cpu/simd/simd.hpp>

#include <algorithm>
#include <cstring>

namespace troupe::cpu {

namespace {

constexpr auto block_channels = channel_square::channels;

/// The plain filters of a block of channels. The filters of one output channel
/// are contiguous: [in][tap].
struct copied_filters {
  float* first;
  std::int64_t stride; // from one output channel to the next
  std::int64_t taps;
};

/// blocks[tap] points to the 16i16o block of a tap.
TROUPE_SIMD
void copy_blocks(const float* const* blocks, const copied_filters& plain) {
  // [in * tap][out]. Squares of it are transposed, so that each row of a plain
  // filter is written once, in order.
  alignas(64) float all[block_channels * most_taps][block_channels];
  for (std::int64_t tap = 0; tap < plain.taps; ++tap)
    for (std::int64_t i = 0; i < block_channels; ++i)
      std::memcpy(all[i * plain.taps + tap], blocks[tap] + i * block_channels,
                  sizeof all[0]);
  for (std::int64_t k = 0; k < block_channels * plain.taps;
       k += block_channels) {
    channel_square t;
    std::memcpy(t.at, all[k], sizeof t.at);
    t = transposed(t);
    for (std::int64_t o = 0; o < block_channels; ++o)
      std::memcpy(plain.first + o * plain.stride + k, t.at[o], sizeof t.at[o]);
  }
}

} // namespace

std::optional<filter_copy> filter_copy::between(const dnnl::memory::desc& from,
                                                const dnnl::memory::desc& to) {
  if (!is_filter_of_squares(from.data) || !is_filter_of_squares(to.data)
      || !is_blocked_filter(from.data) || !is_plain_filter(to.data))
    return std::nullopt;
  filter_copy copy;
  std::copy_n(from.data.dims, 4, copy.dims_.begin());
  std::copy_n(blocking_of(from.data).strides, 4, copy.strides_.begin());
  return copy;
}

void filter_copy::run(const float* from, float* to) const {
  const std::int64_t taps = dims_[2] * dims_[3];
  const std::int64_t stride = dims_[1] * taps;
  std::array<const float*, most_taps> blocks;
  for (std::int64_t out = 0; out < dims_[0] / block_channels; ++out)
    for (std::int64_t in = 0; in < dims_[1] / block_channels; ++in) {
      list_blocks(from + out * strides_[0] + in * strides_[1], blocks.data());
      copy_blocks(
        blocks.data(),
        {to + block_channels * (out * stride + in * taps), stride, taps});
    }
}

void filter_copy::list_blocks(const float* first, const float** blocks) const {
  for (std::int64_t row = 0; row < dims_[2]; ++row)
    for (std::int64_t column = 0; column < dims_[3]; ++column)
      *blocks++ = first + row * strides_[2] + column * strides_[3];
}

} // namespace troupe::cpu
