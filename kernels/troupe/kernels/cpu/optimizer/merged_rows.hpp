// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/kernels/variable.hpp>

#include <cstdint>
#include <string_view>

namespace troupe::cpu {

/// Throws error(out_of_range), error(shape_mismatch) or error(dtype_mismatch),
/// naming `slot`, unless the values are float32, every row index is below the
/// height, and there is one value per row. Without rows there need be no
/// values.
void require_rows(std::string_view slot, const selected_rows& value);

/// Every row of `value` once, in ascending order. Values of equal rows are
/// added up in their original order. Throws as `require_rows`.
selected_rows merge_rows(std::string_view slot, const selected_rows& value,
                         arena& memory);

/// The same rows with their values times `factor`, for gradient clipping.
/// Throws as `require_rows`.
selected_rows multiply_rows(std::string_view slot, const selected_rows& value,
                            float factor, arena& memory);

} // namespace troupe::cpu
