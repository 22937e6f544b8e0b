// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/graph/program.hpp>

#include <set>
#include <string>
#include <string_view>

namespace troupe::graph {

/// Whether an op may write X@GRAD in the memory of Out@GRAD: gradients of
/// activations and of softmax. Their kernels read an element of Out@GRAD (of
/// softmax: a line) for the last time before they write that of X@GRAD.
bool may_write_in_place(std::string_view op_type);

/// Lets such ops of the main block write X@GRAD as the next version of
/// Out@GRAD, so that both take the memory of one; readers are told. Results do
/// not change.
///
/// Only where nobody else reads or writes Out@GRAD, both are dense temporaries
/// of one declared shape and dtype, neither is in `kept` or the gradient of a
/// parameter, and the program has no other block, whose ops would need the
/// name.
program write_in_place(program p, const std::set<std::string>& kept);

/// True if the main block has an op that may write in place.
bool has_ops_to_write_in_place(const program& p);

} // namespace troupe::graph
