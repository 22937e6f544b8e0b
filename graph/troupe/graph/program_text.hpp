// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/graph/program.hpp>

#include <string>

namespace troupe::graph {

/// A program for people to read: per block its variables (sorted), then its
/// ops, one a line. The call stacks are left out. The text is the same for
/// equal programs, so that tests can compare it:
///
///     var fc_0.w_0: float32 [784, 10], persistable, parameter
///     {Out: fc_0.tmp_0} = mul {X: image, Y: fc_0.w_0} x_num_col_dims=1
std::string to_text(const program& p);

/// One op as such a line, without line end.
std::string to_text(const op_desc& op);

/// "forward", "backward|loss", "optimize", ...
std::string role_text(std::int32_t role);

} // namespace troupe::graph
