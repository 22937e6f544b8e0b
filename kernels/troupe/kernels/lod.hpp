// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

namespace troupe {

/// Level of detail (Paddle's LoD): offsets that cut the first axis of a tensor
/// into sequences. There is one list of offsets per level, outermost first.
/// Each list starts with 0 and never decreases. The offsets of the last level
/// count rows of the tensor. The offsets of every other level count sequences
/// of the next level.
///
/// Example: {{0, 2, 3}, {0, 1, 4, 6}} describes six rows in three sequences.
/// The first group has two sequences and the second has one.
using lod = std::vector<std::vector<std::uint64_t>>;

/// Levels shared between tensors; null means no sequences.
using shared_lod = std::shared_ptr<const lod>;

/// Throws error(invalid_argument), naming the wrong offset, unless `levels` are
/// valid for a tensor of `rows` rows.
void check_lod(const lod& levels, std::int64_t rows);

/// Converts `levels` to the form that tensors hold; no levels give null. Throws
/// as `check_lod` does.
shared_lod make_lod(lod levels, std::int64_t rows);

/// Number of sequences in a level; level 0 is the outermost.
inline std::int64_t num_sequences(const lod& levels, std::size_t level = 0) {
  return static_cast<std::int64_t>(levels[level].size()) - 1;
}

/// The rows [first_row, last_row) of some sequences, and their levels.
struct lod_slice {
  std::int64_t first_row = 0;
  std::int64_t last_row = 0;
  lod levels;
};

/// Returns sequences [first, first + count) of the outermost level. Their
/// offsets start at 0 again. Throws error(out_of_range).
lod_slice slice_lod(const lod& levels, std::int64_t first, std::int64_t count);

/// Returns the levels of the concatenation of two tensors along axis 0. Throws
/// error(shape_mismatch) unless both have the same number of levels.
lod append_lod(lod front, const lod& back);

} // namespace troupe
