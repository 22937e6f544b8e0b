// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/kernels/cpu/conv/channel_square.hpp>

#include <oneapi/dnnl/dnnl.h>

#include <cstdint>

/// Questions about oneDNN's descriptors of filters [out, in, height, width],
/// for the loops that convert between layouts.
namespace troupe::cpu {

inline const dnnl_blocking_desc_t& blocking_of(const dnnl_memory_desc_t& d) {
  return d.format_desc.blocking;
}

inline std::int64_t taps_of(const dnnl_memory_desc_t& d) {
  return d.dims[2] * d.dims[3];
}

/// True if both channel counts are multiples of 16, the hand-written loops
/// support the number of taps, and the descriptor has neither an offset nor
/// extra data.
inline bool is_filter_of_squares(const dnnl_memory_desc_t& d) {
  return d.ndims == 4 && taps_of(d) <= most_taps
         && d.dims[0] % channel_square::channels == 0
         && d.dims[1] % channel_square::channels == 0
         && d.format_kind == dnnl_blocked && d.offset0 == 0
         && d.extra.flags == 0;
}

/// True if neighbouring taps are `step` elements apart.
inline bool has_taps(const dnnl_memory_desc_t& d, std::int64_t step) {
  const auto& b = blocking_of(d);
  return (d.dims[3] == 1 || b.strides[3] == step)
         && (d.dims[2] == 1 || b.strides[2] == d.dims[3] * step);
}

inline bool is_plain_filter(const dnnl_memory_desc_t& d) {
  const auto& b = blocking_of(d);
  return d.data_type == dnnl_f32 && b.inner_nblks == 0 && has_taps(d, 1)
         && b.strides[1] == taps_of(d)
         && b.strides[0] == d.dims[1] * taps_of(d);
}

/// True for OIhw16i16o, with the blocks themselves in any order.
inline bool is_blocked_filter(const dnnl_memory_desc_t& d) {
  constexpr auto channels = channel_square::channels;
  constexpr dnnl_dim_t in_axis = 1, out_axis = 0;
  const auto& b = blocking_of(d);
  return d.data_type == dnnl_f32 && b.inner_nblks == 2
         && b.inner_blks[0] == channels && b.inner_blks[1] == channels
         && b.inner_idxs[0] == in_axis && b.inner_idxs[1] == out_axis;
}

} // namespace troupe::cpu
