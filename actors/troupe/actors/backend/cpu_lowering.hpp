// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/actors/backend/backend.hpp>

namespace troupe::actors {

/// What of `wanted` the kernels for devices of `kind`, which are the CPU's, can
/// do: a pass that makes ops without a kernel is left out.
graph::lowering_options cpu_lowering(graph::lowering_options wanted,
                                     const kernel_table& kernels,
                                     device_kind kind);

} // namespace troupe::actors
