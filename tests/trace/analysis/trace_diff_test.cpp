// SPDX-License-Identifier: Apache-2.0
#include "trace/analysis/made_trace.hpp"

#include <troupe/trace/analysis/trace_diff.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <random>
#include <vector>

using namespace troupe;
using namespace troupe::trace;
using namespace troupe::test;

TEST_SUITE("trace.diff") {

namespace {

/// Steps with a `mul` of `mul_ns` and a `relu` of 1000 ns, each up to a tenth
/// more or less.
process_trace noisy(std::uint64_t mul_ns, std::size_t steps, unsigned seed) {
  std::mt19937 random{seed};
  const auto about = [&](std::uint64_t ns) {
    return std::uniform_int_distribution{ns - ns / 10, ns + ns / 10}(random);
  };
  made_trace t;
  const auto mul = t.op("mul"), relu = t.op("relu");
  std::uint64_t now = 0;
  for (std::uint32_t s = 0; s < steps + 2; ++s) {
    const auto middle = now + about(mul_ns), end = middle + about(1000);
    t.step(s, now, end)
      .run(mul, s, 0, now, middle)
      .run(relu, s, 0, middle, end);
    now = end;
  }
  return t.done();
}

trace_difference compare_traces(const process_trace& a, const process_trace& b,
                                diff_by by = diff_by::type) {
  const std::vector<process_trace> parts_a{a}, parts_b{b};
  return compare(timeline{parts_a}, op_graph{a.graph}, timeline{parts_b},
                 op_graph{b.graph}, by);
}

} // namespace

TEST_CASE("runs that differ by noise only show no difference") {
  for (unsigned seed = 1; seed < 40; ++seed) {
    const auto found =
      compare_traces(noisy(5000, 50, seed), noisy(5000, 50, 1000 + seed));
    CAPTURE(seed);
    CHECK(found.step.found == difference::none);
    for (const auto& row : found.rows)
      CHECK(row.found == difference::none);
  }
}

TEST_CASE("an op that became slower is found, and no other one") {
  const auto found = compare_traces(noisy(5000, 50, 1), noisy(6500, 50, 2));
  CHECK(found.step.found == difference::slower);
  REQUIRE(found.rows.size() == 2);
  CHECK(found.rows[0].name == "mul");
  CHECK(found.rows[0].found == difference::slower);
  CHECK(found.rows[0].ratio() == doctest::Approx(1.3).epsilon(0.05));
  CHECK(found.rows[1].found == difference::none);
  const auto back = compare_traces(noisy(6500, 50, 2), noisy(5000, 50, 1));
  CHECK(back.rows[0].found == difference::faster);
}

TEST_CASE("a shift within the quartiles is no difference, however certain") {
  const auto found = compare_traces(noisy(5000, 400, 1), noisy(5200, 400, 2));
  CHECK(found.rows[0].p < 0.001);
  CHECK(found.rows[0].found == difference::none);
}

TEST_CASE("few steps are not compared, whatever they say") {
  const auto found = compare_traces(noisy(5000, 50, 1), noisy(50'000, 7, 2));
  CHECK(found.rows[0].found == difference::unknown);
  CHECK(found.rows[0].steps_b == 7);
}

TEST_CASE("an op of one run only is told as such, and ops can be compared one "
          "by one") {
  auto b = noisy(5000, 50, 2);
  b.graph.handles[0].type = "matmul";
  const auto found = compare_traces(noisy(5000, 50, 1), b);
  CHECK(found.rows.size() == 3);
  CHECK(found.rows[0].found == difference::only_b); // it takes more time
  CHECK(found.rows[0].name == "matmul");
  CHECK(found.rows[0].ratio() == 0);
  const auto back = compare_traces(b, noisy(5000, 50, 1));
  CHECK(back.rows[0].found == difference::only_a);
  CHECK(found.kinds_only_a == 1);
  CHECK(found.kinds_only_b == 1);
  CHECK(compare_traces(b, b).kinds_only_a == 0);
  const auto by_op = compare_traces(noisy(5000, 50, 1), b, diff_by::op);
  REQUIRE(by_op.rows.size() == 2);
  CHECK(by_op.rows[0].found == difference::none);
}

TEST_CASE(
  "steps in flight together that end one right after the other count as "
  "one mean") {
  // Two steps begin at once; the second one ends 10 ns after the first.
  const auto pairs = [](std::uint64_t ns) {
    made_trace t;
    for (std::uint32_t s = 0; s < 42; s += 2) {
      const auto begin = s / 2 * ns;
      t.step(s, begin, begin + ns - 10).step(s + 1, begin, begin + ns);
    }
    return t.done();
  };
  const auto found = compare_traces(pairs(1000), pairs(2000));
  CHECK(found.step.steps_a == 20);
  CHECK(found.step.a_ns.median == 500);
  CHECK(found.step.found == difference::slower);
}

TEST_CASE("the rank test knows equal, shifted and tied samples") {
  const std::vector<double> low{1, 2, 3, 4, 5, 6, 7, 8};
  const std::vector<double> high{11, 12, 13, 14, 15, 16, 17, 18};
  const std::vector<double> same(8, 3);
  CHECK(rank_test(low, low) == doctest::Approx(1));
  CHECK(rank_test(low, high) == doctest::Approx(0.00094).epsilon(0.02));
  CHECK(rank_test(high, low) == doctest::Approx(0.00094).epsilon(0.02));
  CHECK(rank_test(same, same) == 1);
  CHECK(rank_test(low, {}) == 1);
}

} // TEST_SUITE("trace.diff")
