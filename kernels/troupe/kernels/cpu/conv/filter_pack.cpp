// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/cpu/conv/filter_pack.hpp>

#include <troupe/kernels/cpu/conv/channel_square.hpp>
#include <troupe/kernels/cpu/conv/filter_layout.hpp>
#include <troupe/kernels/cpu/simd/bfloat16_bits.hpp>
#include <troupe/kernels/cpu/simd/simd.hpp>

#include <cstring>

namespace troupe::cpu {

namespace {

constexpr auto channels = channel_square::channels;
constexpr int out_axis = 0;
constexpr int in_axis = 1;
// Upcoming values of each row are prefetched, this many ahead: there are more
// rows than the hardware prefetcher follows.
constexpr int ahead = 32;

TROUPE_INLINE void store(const channel_square& s, float* to) {
  std::memcpy(to, s.at, sizeof s.at);
}

/// Rounds to bfloat16 and interleaves pairs of rows, value by value.
TROUPE_INLINE void store(const channel_square& s, std::uint16_t* to) {
  alignas(64) std::uint32_t bits[channels][channels];
  alignas(64) std::uint32_t pairs[channels / 2][channels];
  std::memcpy(bits, s.at, sizeof bits);
  for (std::int64_t row = 0; row < channels / 2; ++row)
    for (std::int64_t i = 0; i < channels; ++i)
      pairs[row][i] = rounded_half(bits[2 * row][i])
                      | rounded_half(bits[2 * row + 1][i]) << 16;
  std::memcpy(to, pairs, sizeof pairs);
}

/// The plain filters of a block of channels. The filters of one output channel
/// are contiguous: [in][tap].
struct plain_filters {
  const float* first;
  std::int64_t stride; // from one output channel to the next
  std::int64_t taps;
};

/// For pointwise filters.
template <class Element>
TROUPE_INLINE void pack_square(const plain_filters& plain, bool transposes,
                               Element* to) {
  channel_square s;
  for (std::int64_t out = 0; out < channels; ++out) {
    const float* row = plain.first + out * plain.stride;
    __builtin_prefetch(row + ahead);
    std::memcpy(s.at[out], row, sizeof s.at[out]);
  }
  store(transposes ? transposed(s) : s, to);
}

/// For larger filters: one square per tap, one after the other.
template <class Element>
TROUPE_INLINE void pack_squares(const plain_filters& plain, bool transposes,
                                Element* to) {
  alignas(64) float all[channels * most_taps][channels]; // [in * tap][out]
  for (std::int64_t k = 0; k < channels * plain.taps; k += channels) {
    channel_square s;
    for (std::int64_t out = 0; out < channels; ++out) {
      const float* row = plain.first + out * plain.stride + k;
      __builtin_prefetch(row + ahead);
      std::memcpy(s.at[out], row, sizeof s.at[out]);
    }
    s = transposed(s);
    std::memcpy(all[k], s.at, sizeof s.at);
  }
  for (std::int64_t tap = 0; tap < plain.taps; ++tap) {
    channel_square s;
    for (std::int64_t in = 0; in < channels; ++in)
      std::memcpy(s.at[in], all[in * plain.taps + tap], sizeof s.at[in]);
    store(transposes ? s : transposed(s), to + tap * channels * channels);
  }
}

TROUPE_SIMD void pack_block(const plain_filters& plain, bool transposes,
                            float* to) {
  plain.taps == 1 ? pack_square(plain, transposes, to)
                  : pack_squares(plain, transposes, to);
}
TROUPE_SIMD void pack_block(const plain_filters& plain, bool transposes,
                            std::uint16_t* to) {
  plain.taps == 1 ? pack_square(plain, transposes, to)
                  : pack_squares(plain, transposes, to);
}

/// For filters in 16i16o squares, one per tap.
template <class Element>
TROUPE_INLINE void pack_from_squares(const float* from, std::int64_t taps,
                                     bool transposes, Element* to) {
  for (std::int64_t tap = 0; tap < taps; ++tap) {
    channel_square s;
    std::memcpy(s.at, from + tap * channels * channels, sizeof s.at);
    store(transposes ? s : transposed(s), to + tap * channels * channels);
  }
}

TROUPE_SIMD void repack_block(const float* from, std::int64_t taps,
                              bool transposes, float* to) {
  pack_from_squares(from, taps, transposes, to);
}
TROUPE_SIMD void repack_block(const float* from, std::int64_t taps,
                              bool transposes, std::uint16_t* to) {
  pack_from_squares(from, taps, transposes, to);
}

/// The axis that is outermost within a block, if the blocks are of a kind that
/// filter_pack writes.
std::optional<int> outer_axis(const dnnl_memory_desc_t& d) {
  const auto& b = blocking_of(d);
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
  constexpr auto square = channels * channels;
  if (!is_filter_of_squares(from.data) || !is_filter_of_squares(to.data)
      || !has_taps(to.data, square))
    return std::nullopt;
  const bool plain = is_plain_filter(from.data);
  const bool blocked =
    is_blocked_filter(from.data) && has_taps(from.data, square);
  if (!plain && !blocked)
    return std::nullopt;
  const auto outer = outer_axis(to.data);
  if (!outer)
    return std::nullopt;
  filter_pack p;
  p.out_ = to.data.dims[out_axis];
  p.in_ = to.data.dims[in_axis];
  p.taps_ = taps_of(to.data);
  const auto steps = [](const dnnl_memory_desc_t& d, std::int64_t strides) {
    const auto& b = blocking_of(d);
    return block_steps{strides * b.strides[out_axis],
                       strides * b.strides[in_axis]};
  };
  p.from_blocks_ = blocked;
  p.from_ = steps(from.data, blocked ? 1 : channels);
  p.to_ = steps(to.data, 1);
  p.transposes_ = *outer == in_axis;
  p.rounds_ = to.data.data_type == dnnl_bf16;
  return p;
}

std::size_t filter_pack::packed_bytes() const noexcept {
  const auto values = static_cast<std::size_t>(out_ * in_ * taps_);
  return values * (rounds_ ? sizeof(std::uint16_t) : sizeof(float));
}

std::int64_t filter_pack::out_blocks() const noexcept {
  return out_ / channels;
}

void filter_pack::run(const float* from, void* to, std::int64_t first,
                      std::int64_t count) const {
  if (rounds_)
    pack_blocks(from, static_cast<std::uint16_t*>(to), first, count);
  else
    pack_blocks(from, static_cast<float*>(to), first, count);
}

template <class Element>
void filter_pack::pack_blocks(const float* from, Element* to,
                              std::int64_t first, std::int64_t count) const {
  for (std::int64_t out = first; out < first + count; ++out)
    for (std::int64_t in = 0; in < in_ / channels; ++in) {
      const float* block = from + out * from_.out + in * from_.in;
      Element* packed = to + out * to_.out + in * to_.in;
      if (from_blocks_)
        repack_block(block, taps_, transposes_, packed);
      else
        pack_block({block, in_ * taps_, taps_}, transposes_, packed);
    }
}

} // namespace troupe::cpu
