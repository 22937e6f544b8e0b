// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/cpu/filter_pack.hpp>

#include <troupe/kernels/cpu/channel_square.hpp>
#include <troupe/kernels/cpu/simd.hpp>

#include <cstring>

namespace troupe::cpu {

namespace {

constexpr auto channels = channel_square::channels;
constexpr int out_axis = 0;
constexpr int in_axis = 1;

/// The upper half of float bits, rounded to nearest, ties to even; a NaN stays
/// one.
TROUPE_INLINE std::uint32_t rounded(std::uint32_t bits) {
  const std::uint32_t near = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  const std::uint32_t quiet = (bits >> 16) | 0x40u;
  return (bits & 0x7fffffffu) > 0x7f800000u ? quiet : near;
}

TROUPE_INLINE void store(const channel_square& s, float* to) {
  std::memcpy(to, s.at, sizeof s.at);
}

/// Two rows lie in each other, value by value.
TROUPE_INLINE void store(const channel_square& s, std::uint16_t* to) {
  alignas(64) std::uint32_t bits[channels][channels];
  alignas(64) std::uint32_t pairs[channels / 2][channels];
  std::memcpy(bits, s.at, sizeof bits);
  for (std::int64_t row = 0; row < channels / 2; ++row)
    for (std::int64_t i = 0; i < channels; ++i)
      pairs[row][i] =
        rounded(bits[2 * row][i]) | rounded(bits[2 * row + 1][i]) << 16;
  std::memcpy(to, pairs, sizeof pairs);
}

/// A block of filters whose rows of input channels lie `stride` apart.
template <class Element>
TROUPE_INLINE void pack(const float* from, std::int64_t stride, bool transposes,
                        Element* to) {
  channel_square s;
  for (std::int64_t out = 0; out < channels; ++out)
    std::memcpy(s.at[out], from + out * stride, sizeof s.at[out]);
  store(transposes ? transposed(s) : s, to);
}

TROUPE_SIMD void pack_block(const float* from, std::int64_t stride,
                            bool transposes, float* to) {
  pack(from, stride, transposes, to);
}
TROUPE_SIMD void pack_block(const float* from, std::int64_t stride,
                            bool transposes, std::uint16_t* to) {
  pack(from, stride, transposes, to);
}

bool is_pointwise(const dnnl_memory_desc_t& d) {
  return d.ndims == 4 && d.dims[2] == 1 && d.dims[3] == 1
         && d.dims[0] % channels == 0 && d.dims[1] % channels == 0
         && d.format_kind == dnnl_blocked && d.offset0 == 0
         && d.extra.flags == 0;
}

bool is_plain(const dnnl_memory_desc_t& d) {
  const auto& b = d.format_desc.blocking;
  return d.data_type == dnnl_f32 && b.inner_nblks == 0
         && b.strides[in_axis] == 1 && b.strides[out_axis] == d.dims[in_axis];
}

/// What of a block comes first, if these are its blocks: the axis whose
/// channels lie apart.
std::optional<int> outer_axis(const dnnl_memory_desc_t& d) {
  const auto& b = d.format_desc.blocking;
  const auto inner = [&b](int level, int size, int axis) {
    return b.inner_blks[level] == size && b.inner_idxs[level] == axis;
  };
  for (const int first : {out_axis, in_axis}) {
    const int second = 1 - first;
    if (d.data_type == dnnl_f32 && b.inner_nblks == 2
        && inner(0, channels, first) && inner(1, channels, second))
      return first;
    if (d.data_type == dnnl_bf16 && b.inner_nblks == 3
        && inner(0, channels / 2, first) && inner(1, channels, second)
        && inner(2, 2, first))
      return first;
  }
  return std::nullopt;
}

} // namespace

std::optional<filter_pack> filter_pack::between(const dnnl::memory::desc& from,
                                                const dnnl::memory::desc& to) {
  if (!is_pointwise(from.data) || !is_pointwise(to.data)
      || !is_plain(from.data))
    return std::nullopt;
  const auto outer = outer_axis(to.data);
  if (!outer)
    return std::nullopt;
  filter_pack p;
  p.out_ = to.data.dims[out_axis];
  p.in_ = to.data.dims[in_axis];
  p.out_step_ = to.data.format_desc.blocking.strides[out_axis];
  p.in_step_ = to.data.format_desc.blocking.strides[in_axis];
  p.transposes_ = *outer == in_axis;
  p.rounds_ = to.data.data_type == dnnl_bf16;
  return p;
}

void filter_pack::run(const float* from, void* to) const {
  if (rounds_)
    pack_blocks(from, static_cast<std::uint16_t*>(to));
  else
    pack_blocks(from, static_cast<float*>(to));
}

template <class Element>
void filter_pack::pack_blocks(const float* from, Element* to) const {
  for (std::int64_t out = 0; out < out_ / channels; ++out)
    for (std::int64_t in = 0; in < in_ / channels; ++in)
      pack_block(from + channels * (out * in_ + in), in_, transposes_,
                 to + out * out_step_ + in * in_step_);
}

} // namespace troupe::cpu
