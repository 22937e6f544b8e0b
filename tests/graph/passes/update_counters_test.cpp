// SPDX-License-Identifier: Apache-2.0
#include "graph/small_program.hpp"

#include <troupe/graph/passes/update_counters.hpp>

#include <doctest/doctest.h>

#include <string>

using namespace troupe;
using namespace troupe::graph;
using namespace troupe::graph::testing;

TEST_SUITE("graph.passes.update_counters") {

TEST_CASE("an op that increments state counts updates") {
  small_program p;
  p.persistable("counter").persistable("other");
  p.op("increment", {"counter"}, {"counter"});
  // None of these counts updates:
  p.op("increment", {"counter"}, {"other"});
  p.op("increment", {"index"}, {"index"});
  p.op("scale", {"counter"}, {"counter"});
  p.op("increment", {"other"}, {"other"}, role_lr_sched);
  CHECK(has_update_counters(p.desc));
  std::string roles;
  const auto marked = mark_update_counters(p.desc);
  for (auto& op : marked.main().ops)
    roles += std::to_string(op.role()) + " ";
  CHECK(roles == "2 0 0 0 16 ");
  CHECK_FALSE(has_update_counters(linear_with_sgd().desc));
}

} // TEST_SUITE("graph.passes.update_counters")
