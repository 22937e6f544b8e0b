// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/graph/ssa_graph.hpp>
#include <troupe/graph/wiring/wiring_plan.hpp>

#include <string>
#include <vector>

namespace troupe::test {

/// The decisions of a plan, which a test can falsify.
struct loose_plan {
  std::vector<graph::wired_edge> sent;
  std::vector<bool> ends_step;
  std::vector<graph::planned_release> releases;

  loose_plan(const graph::wiring_plan& plan, const graph::ssa_graph& g);
};

/// Says what is wrong with a plan; empty if nothing is. Derives from the graph
/// alone what a plan must do, and follows messages one by one, which
/// `wiring_plan` does not:
///
/// - for every edge, the receiver waits for the sender through a chain of
///   messages; so does every op for itself in the previous step;
/// - an op notifies each variable that it writes;
/// - every handle gets a message, and every op waits for the start of its step;
/// - the step's end waits for every handle;
/// - every user of a temporary releases it, or comes before one that does.
std::string fault_of(const loose_plan& plan, const graph::ssa_graph& g,
                     bool steps_overlap);

} // namespace troupe::test
