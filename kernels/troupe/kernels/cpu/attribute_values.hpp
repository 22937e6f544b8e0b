// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/kernels/kernel.hpp>

namespace troupe::cpu {

/// The numbers that an op carries in its attributes: `values` in newer
/// programs, `fp32_values`, `int64_values` and their like in older ones; the
/// first list that is not empty counts. Cast to `type`, with shape `dims`.
/// Throws error(invalid_argument) if there are none or another number of them
/// than `dims` has elements.
tensor attribute_values(const kernel_context& ctx, const shape& dims,
                        dtype type);

} // namespace troupe::cpu
