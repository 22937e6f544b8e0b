// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/cpu/winograd/winograd_filters.hpp>

#include <troupe/kernels/cpu/conv/convolution.hpp>

namespace troupe::cpu {

namespace {

constexpr std::int64_t taps = winograd_taps;

} // namespace

winograd_filter_layout::winograd_filter_layout(const winograd_loops& loops,
                                               const conv_problem& p)
  : loops_(loops), in_channels_(p.filter[1]), in_blocks_(p.filter_in_blocks) {}

std::int64_t winograd_filter_layout::buffer_size() const noexcept {
  return taps * loops_.lanes * loops_.lanes;
}

// The offset of the first tap of the first filter between two blocks.
std::int64_t winograd_filter_layout::offset(std::int64_t out,
                                            std::int64_t in) const noexcept {
  const auto lanes = loops_.lanes;
  return in_blocks_ ? (out * (in_channels_ / lanes) + in) * buffer_size()
                    : (out * in_channels_ + in) * lanes * taps;
}

// A filter in blocks is [taps, in, out] already. A plain filter has a row [in,
// taps] per output channel.
winograd_block<const float>
winograd_filter_layout::forward(const float* filter, std::int64_t out,
                                std::int64_t in, float* buffer) const {
  const auto lanes = loops_.lanes;
  const float* from = filter + offset(out, in);
  if (in_blocks_)
    return {from, lanes * lanes, lanes};
  for (std::int64_t i = 0; i < taps; ++i)
    loops_.transpose(from + i * lanes, in_channels_ * taps,
                     buffer + i * lanes * lanes, lanes);
  return {buffer, lanes, taps * lanes};
}

// Produces [taps, out, in], the last tap first.
winograd_block<const float>
winograd_filter_layout::backward(const float* filter, std::int64_t out,
                                 std::int64_t in, float* buffer) const {
  const auto lanes = loops_.lanes;
  const float* from = filter + offset(out, in);
  float* to = buffer + (taps - 1) * lanes * lanes;
  for (std::int64_t tap = 0; tap < taps; ++tap, to -= lanes * lanes)
    if (in_blocks_)
      loops_.transpose(from + tap * lanes * lanes, lanes, to, lanes);
    else
      for (std::int64_t o = 0; o < lanes; ++o)
        for (std::int64_t i = 0; i < lanes; ++i)
          to[o * lanes + i] = from[(o * in_channels_ + i) * taps + tap];
  return {buffer, lanes * lanes, lanes};
}

winograd_block<float> winograd_filter_layout::begin(float* filter,
                                                    std::int64_t out,
                                                    std::int64_t in,
                                                    float* buffer) const {
  const auto lanes = loops_.lanes;
  if (in_blocks_)
    return {filter + offset(out, in), lanes * lanes, lanes};
  return {buffer, lanes, taps * lanes};
}

void winograd_filter_layout::wrote(float* filter, std::int64_t out,
                                   std::int64_t in, const float* buffer) const {
  if (in_blocks_)
    return;
  const auto lanes = loops_.lanes;
  for (std::int64_t i = 0; i < taps; ++i)
    loops_.transpose(buffer + i * lanes * lanes, lanes,
                     filter + offset(out, in) + i * lanes, in_channels_ * taps);
}

} // namespace troupe::cpu
