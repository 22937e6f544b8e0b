// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/graph/program.hpp>
#include <troupe/kernels/kernel.hpp>

#include <memory>
#include <string_view>

namespace troupe::actors {

/// The kernel of `op`, an op of a program that went through
/// `graph::expose_sub_blocks`: the table's, or one that runs the op's block
/// (conditional_block, while, and their gradients). `p` is read here alone.
/// Throws error(unsupported_op) for an op that neither has.
std::unique_ptr<kernel> make_op_kernel(const graph::program& p,
                                       const graph::op_desc& op,
                                       const kernel_table& kernels,
                                       device_kind kind);

/// True for ops that may run although some of their inputs have no value: those
/// of the branch that was not taken, or of devices without samples.
bool takes_absent_inputs(std::string_view op_type);

} // namespace troupe::actors
