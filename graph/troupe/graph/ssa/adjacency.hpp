// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/graph/ssa_graph.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace troupe::graph {

/// The edges of a graph by start handle, in compressed sparse row form.
class adjacency {
public:
  struct target {
    handle_id to;
    std::uint32_t distance;
  };

  /// Takes edges with distance at most `max_distance`. Throws
  /// error(graph_invalid) naming an edge whose ends are not handles of `g`.
  adjacency(const ssa_graph& g, std::uint32_t max_distance);

  std::span<const target> operator[](handle_id from) const {
    return {targets_.data() + begin_[from], targets_.data() + begin_[from + 1]};
  }

private:
  std::vector<std::size_t> begin_; // per handle, plus the end of the last
  std::vector<target> targets_;
};

} // namespace troupe::graph
