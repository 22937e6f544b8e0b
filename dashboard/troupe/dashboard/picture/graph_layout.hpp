// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/trace/trace.hpp>

#include <vector>

namespace troupe::dashboard {

/// Where a handle is drawn: its middle, in units of a node's height.
struct point {
  double x = 0;
  double y = 0;
};

struct graph_layout {
  std::vector<point> places; ///< by handle
  double width = 0;
  double height = 0;
};

/// Lays out a graph in columns, from left to right: each handle stands to the
/// right of all handles of the same step that it waits for. Devices are bands
/// from top to bottom. Within a column of a band, handles are ordered by the
/// mean place of their neighbours in the columns beside it, which leaves few
/// crossings (Sugiyama, Tagawa, Toda: Methods for visual understanding of
/// hierarchical system structures, 1981).
///
/// Takes time in proportion to handles and edges, times the logarithm of a
/// column's size.
graph_layout lay_out(const trace::graph_info& graph);

} // namespace troupe::dashboard
