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

/// Two ranks, in which an op and a collective take some ms per step.
std::vector<slow_rank> found_in(std::uint64_t ms_of_0, std::uint64_t ms_of_1,
                                std::uint32_t steps = 12) {
  const std::uint64_t ms = 1'000'000;
  made_trace t{2, 1};
  t.graph().process_of_device = {0, 1};
  const handle_id work[] = {t.op("work", 0), t.op("work", 1)};
  const handle_id merge[] = {t.op("all_reduce", 0, true),
                             t.op("all_reduce", 1, true)};
  std::vector<process_trace> parts;
  for (std::uint32_t i : {0u, 1u}) {
    auto of = t;
    of.run_info().process = i;
    for (std::uint32_t s = 0; s < steps; ++s) {
      const auto ns = (i == 0 ? ms_of_0 : ms_of_1) * ms + s % 4 * 1000;
      const auto at = s * 20 * ms;
      of.step(s, at, at + 19 * ms)
        .run(work[i], s, 0, at, at + ns)
        .run(merge[i], s, 0, at + ns, at + 19 * ms);
    }
    parts.push_back(of.done());
  }
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
