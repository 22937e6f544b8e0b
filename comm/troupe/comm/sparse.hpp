// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/kernels/memory/arena.hpp>
#include <troupe/kernels/variable.hpp>

#include <cstdint>
#include <span>

namespace troupe::comm {

enum class row_merge : std::uint8_t {
  /// Each row once, rows ascending; values of one row are added in device
  /// order, on one device in the order of their positions.
  add_duplicates,
  /// All rows of device 0, then of device 1, and so on, duplicates kept: what
  /// Paddle's gather of SelectedRows gives. Optimizers must then add.
  concatenate,
};

/// Merges the sparse gradients of all devices of this process into one. The
/// result is bit-equal from run to run.
///
/// All ranks have one height and, where they have values, one dtype and the
/// same extents after axis 0: float32, float16, bfloat16 or int32, added as
/// `collective` adds them (any dtype for `concatenate`). A null pointer or rows
/// without values are an idle device. If all are idle the result has no rows
/// and no values, and the height of the first rank that is not null.
///
/// `rows_of[r]` may be written by nobody meanwhile. `memory` hands out the
/// result's values. Throws error(shape_mismatch | dtype_mismatch |
/// out_of_range) naming the rank, error(out_of_memory).
selected_rows merge_rows(std::span<const selected_rows* const> rows_of,
                         arena& memory,
                         row_merge how = row_merge::add_duplicates);

} // namespace troupe::comm
