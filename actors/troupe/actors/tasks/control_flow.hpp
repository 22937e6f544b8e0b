// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/graph/program.hpp>
#include <troupe/kernels/kernel.hpp>

#include <memory>
#include <string_view>

namespace troupe::actors {

/// Makes the kernel of `op`: the table's, or one that runs the op's block
/// (conditional_block, while, and their gradients). The program must have been
/// processed by `graph::expose_sub_blocks`. `p` is used only during this call.
/// Throws error(unsupported_op) if there is no such kernel.
std::unique_ptr<kernel> make_op_kernel(const graph::program& p,
                                       const graph::op_desc& op,
                                       const kernel_table& kernels,
                                       device_kind kind);

/// True for ops that can run if some inputs have no value, because a branch was
/// not taken or a device has no samples.
bool takes_absent_inputs(std::string_view op_type);

} // namespace troupe::actors
