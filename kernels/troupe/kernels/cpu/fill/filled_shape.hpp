// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/kernels/kernel.hpp>

namespace troupe::cpu {

/// The shape that an op without X fills: extents in the tensor ShapeTensor, in
/// a tensor each (ShapeTensorList), or in attribute `shape`. Throws
/// error(invalid_argument) if extents are unknown.
shape filled_shape(const kernel_context& ctx);

/// The same for ops whose extent `output_dim_idx` is extent `input_dim_idx` of
/// Input; with `count_sequences` and extent 0 of sequences, their number.
shape filled_shape_like_batch(const kernel_context& ctx, bool count_sequences);

} // namespace troupe::cpu
