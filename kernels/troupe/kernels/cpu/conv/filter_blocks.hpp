// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/kernels/kernel.hpp>

#include <memory>
#include <string_view>

namespace troupe::cpu {

// Filters [out, in, height, width] may lie in memory as [out / 16, in / 16,
// height, width, 16 in, 16 out], float32: what oneDNN calls OIhw16i16o, reads
// forward and makes as the gradient on machines with AVX-512. Both channels are
// multiples of 16, so the elements are those of the plain tensor in another
// order, without padding, and loops over elements need not know.

/// Whether filters of `dims` can lie in blocks.
bool fits_filter_blocks(const shape& dims) noexcept;

/// Their layout. Asserts that they fit.
std::shared_ptr<const layout> filter_blocks(const shape& dims);

/// Whether a tensor is described by such a layout.
bool lies_in_filter_blocks(const tensor& value) noexcept;

/// A filter: float32 input `index` of `slot`, in blocks if it lies so and plain
/// otherwise. Errors are those of `float_input`.
tensor filter_input(const kernel_context& ctx, std::string_view slot,
                    std::size_t index = 0);

/// A copy of a plain filter in blocks, in `memory`; throws
/// error(shape_mismatch), naming `slot`, if `format`, which `filter_blocks`
/// made, is of other dims.
tensor in_filter_blocks(const tensor& plain, std::string_view slot,
                        const std::shared_ptr<const layout>& format,
                        arena& memory);

} // namespace troupe::cpu
