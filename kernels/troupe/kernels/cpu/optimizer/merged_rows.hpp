// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/kernels/variable.hpp>

#include <cstdint>
#include <string_view>

namespace troupe::cpu {

/// Throws error(out_of_range), error(shape_mismatch) or error(dtype_mismatch),
/// naming `slot`, unless the rows are float32, lie within the height and have
/// a value each. Rows of which there are none need no values.
void require_rows(std::string_view slot, const selected_rows& value);

/// Every row of `value` once, in rising order, with the values of equal rows
/// added up in the order in which they came. Throws as `require_rows`.
selected_rows merge_rows(std::string_view slot, const selected_rows& value,
                         arena& memory);

/// The same rows, their values times `factor`: what clips a gradient. Throws as
/// `require_rows`.
selected_rows multiply_rows(std::string_view slot, const selected_rows& value,
                            float factor, arena& memory);

} // namespace troupe::cpu
