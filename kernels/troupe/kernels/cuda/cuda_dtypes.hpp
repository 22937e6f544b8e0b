// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/kernels/dtype.hpp>

#include <string_view>

namespace troupe::cuda {

/// True if the op's kernel for CUDA devices takes values of this dtype in the
/// slot, or if there is no such kernel.
bool takes_dtype(std::string_view op_type, std::string_view slot, dtype type);

} // namespace troupe::cuda
