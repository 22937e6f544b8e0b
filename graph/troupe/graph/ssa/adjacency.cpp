// SPDX-License-Identifier: Apache-2.0
#include <troupe/graph/ssa/adjacency.hpp>

#include <troupe/base/error.hpp>

namespace troupe::graph {

namespace {

void check_ends(const edge& e, const ssa_graph& g) {
  if (e.from >= g.size() || e.to >= g.size())
    throw error{errc::graph_invalid, "edge from " + handle_name(g, e.from)
                                       + " to " + handle_name(g, e.to)
                                       + " names a handle that the graph "
                                       + "does not have"};
}

} // namespace

adjacency::adjacency(const ssa_graph& g, std::uint32_t max_distance)
  : begin_(g.size() + 1) {
  for (auto& e : g.edges) {
    check_ends(e, g);
    if (e.distance <= max_distance)
      ++begin_[e.from + 1];
  }
  for (std::size_t i = 1; i < begin_.size(); ++i)
    begin_[i] += begin_[i - 1];
  targets_.resize(begin_.back());
  auto next = begin_;
  for (auto& e : g.edges)
    if (e.distance <= max_distance)
      targets_[next[e.from]++] = {e.to, e.distance};
}

} // namespace troupe::graph
