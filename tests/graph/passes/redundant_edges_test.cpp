// SPDX-License-Identifier: Apache-2.0
#include "graph/brute_force.hpp"
#include "graph/random_program.hpp"
#include "graph/small_program.hpp"

#include <troupe/graph/passes/program_order.hpp>
#include <troupe/graph/passes/redundant_edges.hpp>
#include <troupe/graph/ssa/hazard_checker.hpp>

#include <doctest/doctest.h>

using namespace troupe;
using namespace troupe::graph;
using namespace troupe::graph::testing;

TEST_SUITE("graph.passes.redundant_edges") {

namespace {

bool any_edge_is_redundant(const ssa_graph& g) {
  for (std::size_t i = 0; i < g.edges.size(); ++i) {
    auto fewer = g;
    auto gone = g.edges[i];
    fewer.edges.erase(fewer.edges.begin() + static_cast<std::ptrdiff_t>(i));
    if (gone.kind == edge_kind::data && gone.distance == 0)
      continue;
    if (brute_force_same_order(g, fewer, 3))
      return true;
  }
  return false;
}

} // namespace

TEST_CASE("what the data of a step implies is dropped") {
  auto g =
    build(linear_with_sgd(), on_cpus(1, merge_strategy::all_reduce, {"w"}));
  CHECK(describe_hazards(remove_redundant_edges(g))
        == "fetch@0 -> sgd_w@0 write_after_read +1\n"
           "b:1@0 -> b:0@0 data +1\n"
           "w:1@0 -> w:0@0 data +1\n");
}

TEST_CASE("edges that nothing implies stay") {
  small_program p;
  p.persistable("w").op("look", {"w"}, {"y"}).op("set", {"x"}, {"w"});
  auto g = build(p);
  CHECK(remove_redundant_edges(g).edges == g.edges);
}

TEST_CASE("edges over more than one step stay") {
  auto g = build(linear_with_sgd());
  edge far{find_op(g, "mul"), find_op(g, "sgd_w"), edge_kind::order, 2};
  g.edges.push_back(far);
  CHECK(remove_redundant_edges(g).edges.back() == far);
}

TEST_CASE("random graphs keep their order and lose all redundant edges") {
  std::size_t dropped = 0;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    CAPTURE(seed);
    auto p =
      seed % 2 == 0 ? random_program(seed) : random_training_program(seed);
    auto g = build(p, random_options(p, seed));
    if (seed % 3 == 0)
      g = run_in_program_order(g);
    auto less = remove_redundant_edges(g);
    dropped += g.edges.size() - less.edges.size();
    CHECK(brute_force_same_order(g, less, 3));
    CHECK_FALSE(any_edge_is_redundant(less));
    CHECK_NOTHROW(check_hazards(less, 2));
  }
  CHECK(dropped > 100);
}

} // TEST_SUITE("graph.passes.redundant_edges")
