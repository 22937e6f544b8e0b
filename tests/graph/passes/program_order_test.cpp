// SPDX-License-Identifier: Apache-2.0
#include "graph/random_program.hpp"
#include "graph/small_program.hpp"

#include <troupe/graph/passes/program_order.hpp>
#include <troupe/graph/ssa/hazard_checker.hpp>
#include <troupe/graph/ssa/reachability.hpp>

#include <doctest/doctest.h>

#include <vector>

using namespace troupe;
using namespace troupe::graph;
using namespace troupe::graph::testing;

TEST_SUITE("graph.passes.program_order") {

TEST_CASE("ops of a device are chained, each device by itself") {
  small_program p;
  p.op("a", {"x"}, {"y"}).op("b", {"x"}, {"z"}).op("c", {"x"}, {"u"});
  auto g = run_in_program_order(build(p, on_cpus(2)));
  CHECK(describe_hazards(g)
        == "a@0 -> b@0 order +0\n"
           "a@1 -> b@1 order +0\n"
           "b@0 -> c@0 order +0\n"
           "b@1 -> c@1 order +0\n"
           "c@0 -> a@0 order +1\n"
           "c@1 -> a@1 order +1\n");
}

TEST_CASE("a program of one op gets no edges") {
  small_program p;
  p.op("a", {"x"}, {"y"});
  CHECK(describe_hazards(run_in_program_order(build(p))).empty());
}

TEST_CASE("collectives take their place on every device") {
  auto g = run_in_program_order(build(linear_with_sgd(), on_cpus(2)));
  std::vector<order_query> queries;
  for (std::size_t device : {0, 1}) {
    queries.push_back(
      {find_op(g, "mul_grad", device), find_op(g, "all_reduce"), 0});
    queries.push_back(
      {find_op(g, "all_reduce"), find_op(g, "sgd_b", device), 0});
    queries.push_back(
      {find_op(g, "sgd_b", device), find_op(g, "sgd_w", device), 0});
  }
  CHECK(reachability{g}.find_unordered(queries).empty());
}

TEST_CASE("random graphs stay free of cycles and hazards") {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    auto p = random_training_program(seed);
    auto g = build(p, random_options(p, seed));
    CHECK_NOTHROW(check_hazards(run_in_program_order(g), 3));
  }
}

} // TEST_SUITE("graph.passes.program_order")
