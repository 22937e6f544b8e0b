// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/graph/program.hpp>
#include <troupe/kernels/kernel.hpp>

#include <cstddef>
#include <map>
#include <span>
#include <string>

namespace troupe::graph {

/// Number of ops by type, or by type and dtype.
using op_counts = std::map<std::string, std::size_t, std::less<>>;

/// The ops of `p`, in all blocks and of all roles, without a kernel on one of
/// `devices`, or whose kernel does not take the dtype of a variable ("relu of
/// float64"). The ops `feed`, `fetch` and control-flow ops need no kernel.
op_counts unsupported_ops(const program& p, const kernel_table& kernels,
                          std::span<const device_id> devices);

/// "pad3d (2), warpctc (1)".
std::string to_text(const op_counts& counts);

/// Throws error(unsupported_op) listing all `unsupported_ops`, if there are
/// any.
void require_kernels(const program& p, const kernel_table& kernels,
                     std::span<const device_id> devices);

} // namespace troupe::graph
