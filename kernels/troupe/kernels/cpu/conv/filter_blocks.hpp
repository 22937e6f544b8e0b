// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/kernels/kernel.hpp>

#include <memory>
#include <string_view>

namespace troupe::cpu {

// Filters [out, in, height, width] may lie in memory as [out / 16, in / 16,
// height, width, 16 in, 16 out], float32. oneDNN calls this layout OIhw16i16o;
// on machines with AVX-512 it reads filters so in the forward pass and writes
// their gradients so. Both channel counts are multiples of 16, so there is no
// padding: the elements are those of the plain tensor in another order, and
// elementwise loops need not know the layout.

/// Whether filters of `dims` can lie in blocks.
bool fits_filter_blocks(const shape& dims) noexcept;

/// Their layout. Asserts that they fit.
std::shared_ptr<const layout> filter_blocks(const shape& dims);

/// Whether the tensor has such a layout.
bool lies_in_filter_blocks(const tensor& value) noexcept;

/// A filter: float32 input `index` of `slot`. A filter in blocks is returned as
/// it is, any other layout is converted to the plain one. Errors are those of
/// `float_input`.
tensor filter_input(const kernel_context& ctx, std::string_view slot,
                    std::size_t index = 0);

/// A copy of a plain filter in blocks, in `memory`. `format` comes from
/// `filter_blocks`. Throws error(shape_mismatch), naming `slot`, if its dims
/// differ from the filter's.
tensor in_filter_blocks(const tensor& plain, std::string_view slot,
                        const std::shared_ptr<const layout>& format,
                        arena& memory);

} // namespace troupe::cpu
