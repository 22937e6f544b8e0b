// SPDX-License-Identifier: Apache-2.0
#include <troupe/graph/ssa/adjacency.hpp>

namespace troupe::graph {

adjacency::adjacency(const ssa_graph& g, std::uint32_t max_distance)
  : begin_(g.size() + 1) {
  for (auto& e : g.edges)
    if (e.distance <= max_distance)
      ++begin_[e.from + 1];
  for (std::size_t i = 1; i < begin_.size(); ++i)
    begin_[i] += begin_[i - 1];
  targets_.resize(begin_.back());
  auto next = begin_;
  for (auto& e : g.edges)
    if (e.distance <= max_distance)
      targets_[next[e.from]++] = {e.to, e.distance};
}

} // namespace troupe::graph
