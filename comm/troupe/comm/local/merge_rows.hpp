// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/kernels/memory/arena.hpp>
#include <troupe/kernels/variable.hpp>

#include <span>

namespace troupe::comm::local {

/// Concatenates the sparse gradients of all ranks: all rows of rank 0, then of
/// rank 1, and so on. Duplicates are kept, as in Paddle's gather of
/// SelectedRows; optimizers must add them up.
///
/// All ranks must have the same height. Those with values must have the same
/// dtype and the same extents after axis 0. A null pointer or rows without
/// values mean an idle rank. If all are idle, the result has no rows and no
/// values, and the height of the first rank that is not null.
///
/// `rows_of[r]` must not be modified meanwhile. The result's values are
/// allocated from `memory`. Throws error(shape_mismatch | dtype_mismatch |
/// out_of_range) naming the rank, error(out_of_memory).
selected_rows merge_rows(std::span<const selected_rows* const> rows_of,
                         arena& memory);

} // namespace troupe::comm::local
