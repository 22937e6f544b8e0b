// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/kernels/kernel.hpp>

namespace troupe::cpu {

/// The same value for a second variable; its memory is marked as shared.
variable share_value(const variable& from);

/// The op `sum` over tensor arrays, entry by entry.
void sum_arrays(kernel_context& ctx);

} // namespace troupe::cpu
