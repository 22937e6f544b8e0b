// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/kernels/memory/arena.hpp>
#include <troupe/kernels/variable.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace troupe::comm::local {

/// A rank's selected rows, in memory that the CPU can read.
struct rows_view {
  std::span<const std::int64_t> rows = {};
  std::int64_t height = 0;
  const std::byte* values = nullptr; ///< null: the rank has none
  shape dims = {};                   ///< of the values
  dtype type = dtype::float32;       ///< of the values
};

/// By rank; without a value: the rank is idle.
using rows_of_ranks = std::span<const std::optional<rows_view>>;

/// The view of a rank's rows, or of those of an idle rank if null. Throws
/// error(invalid_argument) if their values are not plain.
std::optional<rows_view> view_of(const selected_rows* rows, std::size_t rank);

/// Checks that the ranks' rows can be concatenated. All ranks must have the
/// same height. Those with values must have the same dtype and the same extents
/// after axis 0. Throws error(shape_mismatch | dtype_mismatch | out_of_range)
/// naming the rank.
void check_rows(rows_of_ranks all);

/// Concatenates the sparse gradients of all ranks: all rows of rank 0, then of
/// rank 1, and so on. Duplicates are kept, as in Paddle's gather of
/// SelectedRows; optimizers must add them up. If no rank has values, the result
/// has no rows and no values, and the height of the first rank that is not
/// idle.
///
/// The rows must pass `check_rows`, and must not be modified meanwhile. The
/// result's values are allocated from `memory`. Throws error(out_of_memory).
selected_rows merge_rows(rows_of_ranks all, arena& memory);

} // namespace troupe::comm::local
