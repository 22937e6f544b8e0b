// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/graph/program.hpp>
#include <troupe/graph/ssa_graph.hpp>
#include <troupe/trace/trace.hpp>

#include <cstddef>
#include <vector>

namespace troupe::actors {

/// What a trace says of a graph.
/// @param g with its data edges
/// @param declares the program's main block, for shapes
/// @param process_of_device empty if there is one process
trace::graph_info
traced_graph(const graph::ssa_graph& g, const graph::block& declares,
             const std::vector<std::size_t>& process_of_device);

} // namespace troupe::actors
