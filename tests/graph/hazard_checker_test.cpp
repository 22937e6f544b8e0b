// SPDX-License-Identifier: Apache-2.0
#include "brute_force.hpp"
#include "random_program.hpp"
#include "small_program.hpp"

#include <troupe/base/error.hpp>
#include <troupe/graph/ssa/hazard_checker.hpp>
#include <troupe/graph/ssa/topological_order.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <string>

using namespace troupe;
using namespace troupe::graph;
using namespace troupe::graph::testing;

TEST_SUITE("graph.hazard_checker") {

namespace {

ssa_graph without(ssa_graph g, handle_id from, handle_id to) {
  std::erase_if(g.edges,
                [&](const edge& e) { return e.from == from && e.to == to; });
  return g;
}

// Removes each edge by itself and lets the checker compare with brute force.
// Returns how many removals left a hazard, by kind of edge.
std::map<edge_kind, int> remove_each_edge(const ssa_graph& g,
                                          std::uint32_t steps_in_flight) {
  std::map<edge_kind, int> needed;
  for (auto& e : g.edges) {
    auto lacking = without(g, e.from, e.to);
    auto found = !find_hazards(lacking, steps_in_flight).empty();
    auto expected = !brute_force_ordered(lacking, steps_in_flight);
    CHECK_MESSAGE(found == expected, handle_name(g, e.from), " -> ",
                  handle_name(g, e.to), " ", to_string(e.kind), " +",
                  e.distance);
    needed[e.kind] += expected;
  }
  return needed;
}

} // namespace

TEST_CASE("training graphs of every strategy are proven") {
  for (auto strategy : {merge_strategy::all_reduce, merge_strategy::reduce,
                        merge_strategy::replicate, merge_strategy::none})
    for (std::size_t devices : {1, 2, 3}) {
      auto g = build(linear_with_sgd(),
                     on_cpus(devices, strategy, {"loss", "w", "b@GRAD"}));
      for (std::uint32_t k : {1, 2, 3})
        CHECK_NOTHROW(check_hazards(g, k));
    }
}

TEST_CASE("a missing edge is named with both ops, variable and device") {
  small_program p;
  p.persistable("w").op("look", {"w"}, {"y"}).op("set", {"x"}, {"w"});
  auto g = build(p, on_cpus(2));
  auto reader = find_op(g, "look", 1);
  auto writer = find_op(g, "set", 1);
  auto lacking = without(g, reader, writer);
  auto hazards = find_hazards(lacking, 2);
  REQUIRE(hazards.size() == 1);
  CHECK(hazards[0].first == reader);
  CHECK(hazards[0].second == writer);
  CHECK(hazards[0].distance == 0);
  CHECK(hazards[0].variable == "w");
  CHECK(hazards[0].device == 1);
  try {
    check_hazards(lacking, 2);
    FAIL("the hazard was overlooked");
  } catch (const error& e) {
    CHECK(e.code() == errc::graph_invalid);
    CHECK(e.where().variable == "w");
    CHECK(e.where().device == "cpu:1");
    CHECK(e.message().find("look#1@cpu:1") != std::string::npos);
    CHECK(e.message().find("set#3@cpu:1") != std::string::npos);
  }
}

TEST_CASE("edges into the next step matter when steps overlap") {
  auto g =
    build(linear_with_sgd(), on_cpus(1, merge_strategy::all_reduce, {"w"}));
  auto lacking = without(g, find_op(g, "fetch"), find_op(g, "sgd_w"));
  CHECK(find_hazards(lacking, 1).empty());
  auto hazards = find_hazards(lacking, 2);
  REQUIRE(hazards.size() == 1);
  CHECK(hazards[0].distance == 1);
  CHECK_THROWS_WITH_AS(check_hazards(lacking, 2),
                       doctest::Contains("of the next step"), error);
}

TEST_CASE("an edge of distance 0 also orders later steps") {
  auto g =
    build(linear_with_sgd(), on_cpus(1, merge_strategy::all_reduce, {"w"}));
  auto fetch = find_op(g, "fetch");
  auto update = find_op(g, "sgd_w");
  auto lacking = without(g, fetch, update);
  // The fetch reads what sgd_w writes, so wait for a later reader instead.
  lacking.edges.push_back({fetch, find_op(g, "mul"), edge_kind::order, 1});
  CHECK(find_hazards(lacking, 2).empty());
}

TEST_CASE("a cycle is reported with its path") {
  auto g = build(linear_with_sgd());
  g.edges.push_back(
    {find_op(g, "sgd_b"), find_op(g, "add"), edge_kind::order, 0});
  CHECK_THROWS_WITH_AS(find_hazards(g, 2), doctest::Contains("cycle"), error);
  CHECK_THROWS_WITH_AS(find_hazards(g, 2),
                       doctest::Contains("-> sgd_b#7@cpu:0"), error);
  CHECK_THROWS_WITH_AS(find_hazards(g, 2), doctest::Contains("-> add#1@cpu:0"),
                       error);
  g.edges.back().distance = 1;
  CHECK(find_hazards(g, 2).empty());
}

TEST_CASE("an edge to a handle that does not exist is an error") {
  auto g = build(linear_with_sgd());
  g.edges.push_back({0, 1000, edge_kind::order, 0});
  CHECK_THROWS_AS(topological_order(g), error);
}

TEST_CASE("random graphs are proven, and the proof equals brute force") {
  std::map<edge_kind, int> needed;
  for (std::uint64_t seed = 0; seed < 150; ++seed) {
    CAPTURE(seed);
    auto p =
      seed % 2 == 0 ? random_program(seed) : random_training_program(seed);
    auto options = random_options(p, seed);
    auto g = build(p, options);
    auto steps_in_flight = static_cast<std::uint32_t>(1 + seed % 3);
    CHECK_NOTHROW(check_hazards(g, steps_in_flight));
    CHECK(brute_force_ordered(g, steps_in_flight));
    for (auto& [kind, count] : remove_each_edge(g, steps_in_flight))
      needed[kind] += count;
  }
  CHECK(needed[edge_kind::data] > 100);
  CHECK(needed[edge_kind::write_after_read] > 100);
  CHECK(needed[edge_kind::write_after_write] > 20);
}

TEST_CASE("hazards found in random damage equal brute force") {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    CAPTURE(seed);
    auto p =
      seed % 2 == 0 ? random_program(seed) : random_training_program(seed);
    auto g = build(p, random_options(p, seed));
    std::mt19937_64 dice{seed};
    std::erase_if(g.edges, [&](const edge& e) {
      return e.kind != edge_kind::data && dice() % 4 == 0;
    });
    for (std::uint32_t k : {1, 2, 3})
      CHECK(find_hazards(g, k).empty() == brute_force_ordered(g, k));
  }
}

} // TEST_SUITE("graph.hazard_checker")
