// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

namespace troupe {

/// Level of detail (Paddle's LoD): offsets that cut the first axis of a tensor
/// into sequences, a list for each level, outermost first. Each list begins
/// with 0 and does not fall. The last level counts rows of the tensor, every
/// other one counts the sequences of the level behind it: {{0, 2, 3}, {0, 1,
/// 4, 6}} are two groups, of two sequences and of one, in six rows.
using lod = std::vector<std::vector<std::uint64_t>>;

/// Levels that tensors share; null means no sequences.
using shared_lod = std::shared_ptr<const lod>;

/// Throws error(invalid_argument), saying which offset, unless `levels` cut
/// `rows` rows as described above.
void check_lod(const lod& levels, std::int64_t rows);

/// `levels` as tensors hold them: null if there is no level. Throws as
/// `check_lod` does.
shared_lod make_lod(lod levels, std::int64_t rows);

/// Sequences of a level, outermost is 0.
inline std::int64_t num_sequences(const lod& levels, std::size_t level = 0) {
  return static_cast<std::int64_t>(levels[level].size()) - 1;
}

/// Rows [first, last) of sequences and the levels that cut them.
struct lod_slice {
  std::int64_t first_row = 0;
  std::int64_t last_row = 0;
  lod levels;
};

/// Sequences [first, first + count) of the outermost level, with offsets that
/// begin with 0 again. Throws error(out_of_range).
lod_slice slice_lod(const lod& levels, std::int64_t first, std::int64_t count);

/// The levels of two tensors, one behind the other. Throws
/// error(shape_mismatch) unless both have equally many levels.
lod append_lod(lod front, const lod& back);

} // namespace troupe
