// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/dashboard/picture/handle_groups.hpp>
#include <troupe/trace/trace.hpp>

#include <span>
#include <vector>

namespace troupe::dashboard {

/// The middle of a handle. The page draws an op 120 wide and 30 high, and a
/// variable as a circle of radius 7, in the same unit.
struct point {
  double x = 0;
  double y = 0;
};

/// A rectangle; y grows downwards.
struct box {
  double x = 0, y = 0; ///< of its upper left corner
  double width = 0;
  double height = 0;
};

struct graph_layout {
  std::vector<point> places; ///< by handle
  std::vector<box> groups;   ///< with a margin, and room for the name on top
  double width = 0;
  double height = 0;
};

/// Lays out a graph. Forward layers stand from left to right, in the order in
/// which they need each other. Under each stands its backward part, and under
/// that its update: so gradients flow back to the left. Devices are bands from
/// top to bottom. Groups do not overlap.
///
/// Within a group, each handle stands to the right of all that it waits for.
/// Handles of a column are ordered by the mean place of their neighbours, which
/// leaves few crossings (Sugiyama, Tagawa, Toda: Methods for visual
/// understanding of hierarchical system structures, 1981).
///
/// Takes time in proportion to handles and edges, times the logarithm of a
/// column's size.
/// @param groups all handles, each in one
graph_layout lay_out(const trace::graph_info& graph,
                     std::span<const handle_group> groups);

} // namespace troupe::dashboard
