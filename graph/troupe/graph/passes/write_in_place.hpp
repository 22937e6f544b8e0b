// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/graph/program.hpp>

#include <set>
#include <string>
#include <string_view>

namespace troupe::graph {

/// True if an op can write X@GRAD to the memory of Out@GRAD: gradients of
/// activations and of softmax. Their kernels finish reading an element of
/// Out@GRAD (softmax: a row) before they write the corresponding element of
/// X@GRAD.
bool may_write_in_place(std::string_view op_type);

/// Makes such ops of the main block write X@GRAD as the next version of
/// Out@GRAD, so that both share memory. Readers of X@GRAD are renamed. Results
/// do not change.
///
/// This is done only if no other op reads or writes Out@GRAD, both are dense
/// temporaries with the same declared shape and dtype, and neither is in `kept`
/// or the gradient of a parameter. The program must have no other block,
/// because its ops could use the name.
program write_in_place(program p, const std::set<std::string>& kept);

/// True if the main block has an op that could write in place.
bool has_ops_to_write_in_place(const program& p);

} // namespace troupe::graph
