// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/graph/program.hpp>

namespace troupe::graph {

/// True if an op of the program makes row-sparse gradients (`is_sparse`).
bool makes_row_gradients(const program& p);

/// Makes gradients of embeddings dense, for devices without kernels for
/// selected rows. Losses and parameters are the same, up to rounding; a step
/// takes time and memory for the whole table instead of the rows that a batch
/// uses.
///
/// Throws error(unsupported_op), naming op and variable, where results would
/// differ: adam with `lazy_mode` and momentum with `rescale_grad` treat rows
/// differently, and only row-sparse gradients have a row of `padding_idx`.
program dense_gradients(program p);

} // namespace troupe::graph
