// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/kernels/dtype.hpp>

#include <cstdint>
#include <optional>

namespace troupe::graph {

/// The number of a dtype in Paddle's VarType.Type (framework.proto). The
/// attributes "dtype", "in_dtype" and "out_dtype" have such values.
std::int32_t dtype_number(dtype type) noexcept;

/// The inverse. Throws error(dtype_mismatch), naming the number, if it is not a
/// tensor element type.
dtype dtype_of_number(std::int64_t number);

/// The inverse; empty for a number that is not a tensor element type.
std::optional<dtype> find_dtype(std::int64_t number) noexcept;

} // namespace troupe::graph
