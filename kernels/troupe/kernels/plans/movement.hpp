// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/kernels/kernel.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace troupe {

// Where ops that move elements put them.

/// Attribute `axis` of transpose2: axis i of Out is X's axis `[i]`. Throws
/// error(invalid_argument) unless it names each axis once.
std::vector<std::size_t> transposed_axes(const attribute_map& attributes,
                                         std::size_t rank);
/// The axes that undo a transposition.
std::vector<std::size_t> inverse_axes(const std::vector<std::size_t>& axes);
/// The extents of `x` in this order.
shape permuted(const shape& x, const std::vector<std::size_t>& order);

/// The axis of concat and split, of an X of these `dims`.
std::size_t joined_axis(const kernel_context& ctx, const shape& dims);
/// The inputs X of concat, one at least. Throws error(invalid_argument).
std::vector<tensor> joined_parts(const kernel_context& ctx);
/// The shape of these parts joined along an axis. Throws error(shape_mismatch |
/// dtype_mismatch) unless they fit.
shape joined_shape(const std::vector<tensor>& parts, std::size_t axis);
/// Extents of the parts that split makes along an axis of extent `whole`:
/// equal, or given by inputs or by attribute sections, where one -1 stands for
/// the rest. Throws error(shape_mismatch).
std::vector<std::int64_t> split_extents(const kernel_context& ctx,
                                        std::int64_t whole);

} // namespace troupe
