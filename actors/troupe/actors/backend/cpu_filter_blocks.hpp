// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/graph/program.hpp>

#include <string_view>

namespace troupe::actors {

/// Attribute of op `conv2d_grad`: it may leave Filter@GRAD in a library's
/// layout, because all readers accept that.
inline constexpr std::string_view filter_in_blocks_attribute =
  "filter_in_blocks";

/// Sets that attribute if only kernels that accept the convolutions' layout use
/// a filter and its gradient. The filter must be a persistable, dense float32
/// variable. Only convolutions without groups may read it, and one optimizer op
/// updates it (`sgd`, `momentum`, `adam`, `adamw`). One `conv2d_grad` writes
/// the gradient, and that optimizer op reads it. The optimizer then keeps the
/// filter and its state in the layout of the gradient, and convolutions that
/// use this layout need no copy. Results do not change.
///
/// A program with several blocks is not changed, because the ops of all blocks
/// would have to be checked.
graph::program keep_filters_in_blocks(graph::program p);

/// True if the main block has a `conv2d_grad` that writes a filter's gradient.
bool has_filter_gradients(const graph::program& p);

} // namespace troupe::actors
