// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace troupe {

/// Sets `order` to the positions in `rows`, rising by row; equal rows stay in
/// the order in which they came. All rows are in [0, height). A radix sort:
/// rows of a sparse gradient are many and their numbers short.
void order_rows(std::span<const std::int64_t> rows, std::int64_t height,
                std::vector<std::int64_t>& order);

} // namespace troupe
