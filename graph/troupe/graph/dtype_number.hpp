// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/kernels/dtype.hpp>

#include <cstdint>
#include <optional>

namespace troupe::graph {

/// The number of Paddle's VarType.Type (framework.proto) for a dtype: what the
/// attributes "dtype", "in_dtype" and "out_dtype" hold.
std::int32_t dtype_number(dtype type) noexcept;

/// The inverse. Throws error(dtype_mismatch) naming a number that is no
/// tensor element type.
dtype dtype_of_number(std::int64_t number);

/// The inverse; none for a number that is no tensor element type.
std::optional<dtype> find_dtype(std::int64_t number) noexcept;

} // namespace troupe::graph
