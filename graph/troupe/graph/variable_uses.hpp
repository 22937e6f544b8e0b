// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/graph/program.hpp>

#include <cstddef>
#include <map>
#include <string_view>
#include <vector>

namespace troupe::graph {

/// Who uses a variable: positions of ops in their block, ascending, once for
/// each argument.
struct variable_uses {
  std::vector<std::size_t> writers;
  std::vector<std::size_t> readers;
};

/// By name; the names are those in `b`. Arguments that name no variable are
/// left out.
using use_map = std::map<std::string_view, variable_uses>;
use_map find_uses(const block& b);

} // namespace troupe::graph
