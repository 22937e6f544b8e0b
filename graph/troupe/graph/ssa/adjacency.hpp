// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/graph/ssa_graph.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace troupe::graph {

/// The edges of a graph by the handle that they begin at, in two arrays.
class adjacency {
public:
  struct target {
    handle_id to;
    std::uint32_t distance;
  };

  /// Edges of at most `max_distance`. Throws error(graph_invalid) naming one to
  /// or from a handle that the graph does not have.
  adjacency(const ssa_graph& g, std::uint32_t max_distance);

  std::span<const target> operator[](handle_id from) const {
    return {targets_.data() + begin_[from], targets_.data() + begin_[from + 1]};
  }

private:
  std::vector<std::size_t> begin_; // per handle, and the end of the last
  std::vector<target> targets_;
};

} // namespace troupe::graph
