// SPDX-License-Identifier: Apache-2.0
#include <troupe/graph/whole_feeds.hpp>

#include <algorithm>
#include <iterator>

namespace troupe::graph {

std::vector<std::string> whole_feeds(std::span<const std::string> feeds,
                                     const block& declarations) {
  const auto is_open = [&](const std::string& name) {
    const auto& dims = declarations.var(name).dims;
    return dims.rank() > 0 && dims[0] < 0;
  };
  const bool some_open = std::ranges::any_of(feeds, is_open);
  std::vector<std::string> whole;
  std::ranges::copy_if(feeds, std::back_inserter(whole),
                       [&](const std::string& name) {
                         return declarations.var(name).dims.rank() == 0
                                || (some_open && !is_open(name));
                       });
  return whole;
}

} // namespace troupe::graph
