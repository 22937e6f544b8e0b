// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/graph/ssa_graph.hpp>

namespace troupe::graph::testing {

/// Says whether all conflicting accesses of steps_in_flight + 1 steps are
/// ordered, in the plainest way: unrolls the steps, with the admission of the
/// last step behind the end of the first, closes the waits-for relation, and
/// looks at every pair of accesses to every storage. For small graphs only.
bool brute_force_ordered(const ssa_graph& g, std::uint32_t steps_in_flight);

/// Says whether the same handles wait, through any chain of edges, for the
/// same others in both graphs, over `steps` steps without admission.
bool brute_force_same_order(const ssa_graph& a, const ssa_graph& b,
                            std::uint32_t steps);

} // namespace troupe::graph::testing
