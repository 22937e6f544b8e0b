// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/graph/program.hpp>

#include <span>
#include <string>
#include <vector>

namespace troupe::graph {

/// Those of `feeds` that each device gets whole instead of a share of the
/// samples: where the program leaves axis 0 of some feed open (-1), that axis
/// counts samples, and a feed whose axis 0 is fixed is no batch. Where it
/// leaves none open, axis 0 of all counts samples. A feed without axes is whole
/// in any case. They keep their order.
std::vector<std::string> whole_feeds(std::span<const std::string> feeds,
                                     const block& declarations);

} // namespace troupe::graph
