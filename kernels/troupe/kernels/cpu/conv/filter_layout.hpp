// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/kernels/cpu/conv/channel_square.hpp>

#include <oneapi/dnnl/dnnl.h>

#include <cstdint>

/// What oneDNN's descriptions say of filters [out, in, height, width], for the
/// loops that take them from one layout into another.
namespace troupe::cpu {

inline const dnnl_blocking_desc_t& blocking_of(const dnnl_memory_desc_t& d) {
  return d.format_desc.blocking;
}

inline std::int64_t taps_of(const dnnl_memory_desc_t& d) {
  return d.dims[2] * d.dims[3];
}

/// Of channels that fill their squares and no more taps than own loops take,
/// all of it from its memory's first byte on.
inline bool is_filter_of_squares(const dnnl_memory_desc_t& d) {
  return d.ndims == 4 && taps_of(d) <= most_taps
         && d.dims[0] % channel_square::channels == 0
         && d.dims[1] % channel_square::channels == 0
         && d.format_kind == dnnl_blocked && d.offset0 == 0
         && d.extra.flags == 0;
}

/// Taps lie `step` elements apart.
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

/// OIhw16i16o or another order of the blocks.
inline bool is_blocked_filter(const dnnl_memory_desc_t& d) {
  constexpr auto channels = channel_square::channels;
  constexpr dnnl_dim_t in_axis = 1, out_axis = 0;
  const auto& b = blocking_of(d);
  return d.data_type == dnnl_f32 && b.inner_nblks == 2
         && b.inner_blks[0] == channels && b.inner_blks[1] == channels
         && b.inner_idxs[0] == in_axis && b.inner_idxs[1] == out_axis;
}

} // namespace troupe::cpu
