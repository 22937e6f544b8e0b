// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/actors/plan/wiring_plan.hpp>
#include <troupe/graph/ssa_graph.hpp>

#include <string>
#include <vector>

namespace troupe::test {

/// What a plan decides, open to mistakes.
struct loose_plan {
  std::vector<actors::wired_edge> sent;
  std::vector<bool> ends_step;
  std::vector<actors::planned_release> releases;

  loose_plan(const actors::wiring_plan& plan, const graph::ssa_graph& g);
};

/// What is wrong with a plan, empty if nothing is. Asks the graph alone what a
/// plan must do, and follows messages one by one, as `wiring_plan` does not:
///
/// - whatever waits by an edge, or an op for itself in the step before, waits
///   by a chain of messages;
/// - an op tells each variable that it writes;
/// - every handle waits for the start of its step, or, if it is version 0 of a
///   variable, for the step before;
/// - the step's end waits for every handle;
/// - every user of a temporary gives it back, or comes before one that does.
std::string fault_of(const loose_plan& plan, const graph::ssa_graph& g,
                     bool steps_overlap);

} // namespace troupe::test
