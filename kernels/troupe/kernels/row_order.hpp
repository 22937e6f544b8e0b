// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace troupe {

/// Sets `order` to the positions in `rows`, sorted by row; equal rows keep
/// their order. All rows must be in [0, height). It is a radix sort, because a
/// sparse gradient has many rows and their numbers are short.
void order_rows(std::span<const std::int64_t> rows, std::int64_t height,
                std::vector<std::int64_t>& order);

} // namespace troupe
