// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/graph/program.hpp>

#include <cstddef>
#include <map>
#include <string_view>
#include <vector>

namespace troupe::graph {

/// The uses of a variable: positions of ops in their block, ascending, once per
/// argument.
struct variable_uses {
  std::vector<std::size_t> writers;
  std::vector<std::size_t> readers;
};

/// Uses by name. Names refer to those in the block. Arguments that name no
/// variable are omitted.
using use_map = std::map<std::string_view, variable_uses>;
use_map find_uses(const block& b);

} // namespace troupe::graph
