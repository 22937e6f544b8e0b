// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/kernels/kernel.hpp>

#include <string_view>

namespace troupe::cpu {

/// The levels of an input. Throws error(invalid_argument) that names the slot
/// if it has none or they do not fit its rows.
const lod& require_levels(const tensor& value, std::string_view slot);

/// Elements per row: the product of all extents but the first.
std::int64_t row_elements(const shape& dims);

} // namespace troupe::cpu
