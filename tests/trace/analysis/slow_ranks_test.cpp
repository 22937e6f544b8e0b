// SPDX-License-Identifier: Apache-2.0
#include "trace/analysis/made_trace.hpp"

#include <troupe/trace/analysis/slow_ranks.hpp>

#include <doctest/doctest.h>

#include <vector>

using namespace troupe;
using namespace troupe::trace;
using namespace troupe::test;

TEST_SUITE("trace.slow_ranks") {

namespace {

std::vector<slow_rank> found_in(std::uint64_t ms_of_0, std::uint64_t ms_of_1,
                                std::uint32_t steps = 12) {
  const auto parts = unequal_ranks(ms_of_0, ms_of_1, steps);
  const timeline all{parts};
  const op_graph graph{parts[0].graph};
  return find_slow_ranks(all, graph);
}

} // namespace

TEST_CASE("the rank whose ops take longer is named, not the one that waits") {
  const auto found = found_in(5, 8);
  REQUIRE(found.size() == 1);
  CHECK(found[0].process == 1);
  CHECK(found[0].type == "work");
  CHECK(found[0].ns / found[0].others_ns == doctest::Approx(1.6).epsilon(0.01));
  CHECK(found_in(8, 5)[0].process == 0);
}

TEST_CASE("equal ranks, and few steps, accuse nobody") {
  CHECK(found_in(5, 5).empty());
  CHECK(found_in(5, 8, 9).empty()); // seven of them count
}

} // TEST_SUITE("trace.slow_ranks")
