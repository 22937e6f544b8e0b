// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/graph/program.hpp>

#include <span>
#include <string>
#include <vector>

namespace troupe::graph {

/// The names in `feeds` of which each device gets the whole value instead of a
/// share of the samples, in the same order. If the program leaves axis 0 of
/// some feed open (-1), that axis counts samples, and feeds with a fixed axis 0
/// are whole. If it leaves none open, axis 0 of all feeds counts samples. A
/// feed without axes is always whole.
std::vector<std::string> whole_feeds(std::span<const std::string> feeds,
                                     const block& declarations);

} // namespace troupe::graph
