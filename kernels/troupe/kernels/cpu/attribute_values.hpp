// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/kernels/kernel.hpp>

namespace troupe::cpu {

/// The numbers in an op's attributes, cast to `type`, with shape `dims`. Newer
/// programs have them in `values`, older ones in `fp32_values`, `int64_values`
/// and the like; the first list that is not empty counts. Throws
/// error(invalid_argument) if there are none, or if `dims` has another number
/// of elements.
tensor attribute_values(const kernel_context& ctx, const shape& dims,
                        dtype type);

} // namespace troupe::cpu
