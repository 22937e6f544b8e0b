// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/graph/program.hpp>

#include <string>

namespace troupe::graph {

/// A program as readable text: for each block its variables (sorted), then its
/// ops, one per line. Call stacks are omitted. Equal programs give equal texts,
/// so that tests can compare them:
///
///     var fc_0.w_0: float32 [784, 10], persistable, parameter
///     {Out: fc_0.tmp_0} = mul {X: image, Y: fc_0.w_0} x_num_col_dims=1
std::string to_text(const program& p);

/// The line of one op, without a newline.
std::string to_text(const op_desc& op);

/// What an op is to do, in one line: "paddings=[1, 1] strides=[2, 2]". Without
/// attributes that only say where the op comes from: those named "op_...". Of
/// values longer than 100 characters only the length.
std::string attributes_text(const attribute_map& attributes);

/// "forward", "backward|loss", "optimize", ...
std::string role_text(std::int32_t role);

} // namespace troupe::graph
