// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/kernels/kernel.hpp>

namespace troupe::cpu {

/// The shape that an op without X fills. The extents are in tensor ShapeTensor,
/// in one tensor each (ShapeTensorList), or in attribute `shape`. Throws
/// error(invalid_argument) if extents are unknown.
shape filled_shape(const kernel_context& ctx);

/// The same for ops that replace extent `output_dim_idx` by extent
/// `input_dim_idx` of Input. With `count_sequences`, extent 0 of an input with
/// sequences is their number.
shape filled_shape_like_batch(const kernel_context& ctx, bool count_sequences);

} // namespace troupe::cpu
