// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/kernels/memory/arena.hpp>
#include <troupe/kernels/variable.hpp>

#include <cstdint>
#include <span>

namespace troupe::comm {

enum class row_merge : std::uint8_t {
  /// Each row occurs once, in ascending order. Values of one row are added in
  /// device order; those of one device in the order of their positions.
  add_duplicates,
  /// All rows of device 0, then of device 1, and so on. Duplicates are kept, as
  /// in Paddle's gather of SelectedRows; optimizers must add them up.
  concatenate,
};

/// Merges the sparse gradients of all devices of this process into one. The
/// result is bit-identical in every run.
///
/// All ranks must have the same height. Those with values must have the same
/// dtype and the same extents after axis 0. The dtype is float32, float16,
/// bfloat16 or int32, added as in `collective`; `concatenate` accepts any
/// dtype. A null pointer or rows without values mean an idle device. If all are
/// idle, the result has no rows and no values, and the height of the first rank
/// that is not null.
///
/// `rows_of[r]` must not be modified meanwhile. The result's values are
/// allocated from `memory`. Throws error(shape_mismatch | dtype_mismatch |
/// out_of_range) naming the rank, error(out_of_memory).
selected_rows merge_rows(std::span<const selected_rows* const> rows_of,
                         arena& memory,
                         row_merge how = row_merge::add_duplicates);

} // namespace troupe::comm
