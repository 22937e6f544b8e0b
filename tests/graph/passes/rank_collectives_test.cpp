// SPDX-License-Identifier: Apache-2.0
#include "graph/brute_force.hpp"
#include "graph/random_program.hpp"
#include "graph/small_program.hpp"

#include <troupe/base/error.hpp>
#include <troupe/graph/passes/program_order.hpp>
#include <troupe/graph/passes/rank_collectives.hpp>
#include <troupe/graph/passes/transfers.hpp>
#include <troupe/graph/ssa/hazard_checker.hpp>

#include <support/caught.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <string>

using namespace troupe;
using namespace troupe::graph;
using namespace troupe::graph::testing;
using test::caught;
using test::says;

TEST_SUITE("graph.passes.rank_collectives") {

namespace {

/// The lines of collectives.
std::string describe_collectives(const ssa_graph& g) {
  const auto all = describe_ops(g);
  std::string lines;
  for (std::size_t begin = 0; begin < all.size();) {
    const auto end = all.find('\n', begin) + 1;
    const auto line = all.substr(begin, end - begin);
    for (auto* kind : {"all_reduce@", "reduce@", "broadcast@"})
      if (line.starts_with(kind))
        lines += line;
    begin = end;
  }
  return lines;
}

} // namespace

TEST_CASE("each device has a rank of an all_reduce") {
  const auto g = make_rank_collectives(build(linear_with_sgd(), on_cpus(2)));
  CHECK(describe_collectives(g)
        == "all_reduce@0: b@GRAD:1 w@GRAD:1 -> b@GRAD:2 w@GRAD:2\n"
           "all_reduce@1: b@GRAD:1 w@GRAD:1 -> b@GRAD:2 w@GRAD:2\n");
}

TEST_CASE(
  "the root alone has a result or a value, ranks are in order per device") {
  const auto g = make_rank_collectives(
    build(linear_with_sgd(), on_cpus(2, merge_strategy::reduce)));
  CHECK(describe_collectives(g)
        == "reduce@0: b@GRAD:1 -> b@GRAD:2\n"
           "reduce@1: b@GRAD:1 ->\n"
           "reduce@0: w@GRAD:1 ->\n"
           "reduce@1: w@GRAD:1 -> w@GRAD:2\n"
           "broadcast@0: b:1 -> b:2\n"
           "broadcast@1: -> b:1\n"
           "broadcast@0: -> w:1\n"
           "broadcast@1: w:1 -> w:2\n");
  CHECK(describe_hazards(g)
        == "mul@0 -> broadcast@0 write_after_read +0\n"
           "mul@1 -> sgd_w@1 write_after_read +0\n"
           "add@0 -> sgd_b@0 write_after_read +0\n"
           "add@1 -> broadcast@1 write_after_read +0\n"
           "reduce@0 -> reduce@0 order +0\n"
           "reduce@1 -> reduce@1 order +0\n"
           "reduce@0 -> broadcast@0 order +0\n"
           "reduce@1 -> broadcast@1 order +0\n"
           "broadcast@0 -> broadcast@0 order +0\n"
           "broadcast@1 -> broadcast@1 order +0\n"
           "broadcast@0 -> reduce@0 order +1\n"
           "broadcast@1 -> reduce@1 order +1\n"
           "b:2@0 -> b:0@0 data +1\n"
           "b:1@1 -> b:0@1 data +1\n"
           "w:1@0 -> w:0@0 data +1\n"
           "w:2@1 -> w:0@1 data +1\n");
}

TEST_CASE("random programs are proven, and no rank uses another's variable") {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    CAPTURE(seed);
    auto p =
      seed % 2 == 0 ? random_program(seed) : random_training_program(seed);
    auto g = make_rank_collectives(build(p, random_options(p, seed)));
    if (seed % 3 == 0)
      g = run_in_program_order(std::move(g));
    for (auto& o : g.ops)
      if (o.collective_index >= 0)
        for (auto list : {o.inputs, o.outputs})
          for (auto id : list)
            CHECK(g.var(id).device == o.device);
    for (std::uint32_t k : {1, 2, 3})
      CHECK(find_hazards(g, k).empty());
    CHECK(brute_force_ordered(g, 2));
  }
}

TEST_CASE("what cannot have ranks is refused") {
  const auto whole = build(linear_with_sgd(), on_cpus(2));
  const auto ranks = make_rank_collectives(whole);
  CHECK(says(caught([&] { make_rank_collectives(ranks); }),
             "have a handle per device already"));
  CHECK(says(caught([&] {
               make_rank_collectives(add_transfers(whole, {0, 1}));
             }),
             "split over places"));
  CHECK(
    says(caught([&] { make_rank_collectives(run_in_program_order(whole)); }),
         "which is a collective"));
}

} // TEST_SUITE("graph.passes.rank_collectives")
