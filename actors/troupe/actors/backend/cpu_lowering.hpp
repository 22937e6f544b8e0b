// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/actors/backend/backend.hpp>

namespace troupe::actors {

/// Returns `wanted` without the passes that make ops without a kernel for
/// `kind`.
graph::lowering_options cpu_lowering(graph::lowering_options wanted,
                                     const kernel_table& kernels,
                                     device_kind kind);

/// Runs the passes over a program that pay off only with the CPU's kernels:
/// filters in blocks (cpu_filter_blocks.hpp).
std::shared_ptr<const graph::program>
cpu_lowered(std::shared_ptr<const graph::program> p,
            const graph::lowering_options& possible);

} // namespace troupe::actors
