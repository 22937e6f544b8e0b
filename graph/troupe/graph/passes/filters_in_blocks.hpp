// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/graph/program.hpp>

#include <string_view>

namespace troupe::graph {

/// Of an op `conv2d_grad`: it may leave Filter@GRAD in a layout of its library,
/// whoever reads it takes it so.
inline constexpr std::string_view filter_in_blocks_attribute =
  "filter_in_blocks";

/// Sets that attribute where a filter and its gradient meet nobody but kernels
/// that take either in the layout of convolutions: the filter is a persistable,
/// dense variable of float32 that only convolutions without groups read and one
/// optimizer op updates (`sgd`, `momentum`, `adam`, `adamw`); one `conv2d_grad`
/// writes the gradient and that optimizer op reads it. The optimizer then
/// leaves the filter and its state as the gradient lies, and convolutions that
/// want them so need no copy. Results do not change.
///
/// A program with several blocks stays as it is: their ops would need looking
/// at.
program keep_filters_in_blocks(program p);

/// True if the main block has a `conv2d_grad` that makes a filter's gradient.
bool has_filter_gradients(const program& p);

} // namespace troupe::graph
