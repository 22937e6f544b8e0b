// SPDX-License-Identifier: Apache-2.0
#include "trace/analysis/made_trace.hpp"

#include <troupe/trace/analysis/failed_steps.hpp>
#include <troupe/trace/analysis/summary.hpp>

#include <doctest/doctest.h>

#include <vector>

using namespace troupe;
using namespace troupe::trace;
using namespace troupe::test;

TEST_SUITE("trace.failed_steps") {

namespace {

/// Steps of 1000 ns in two processes that merge at their end. In step 8,
/// process 0 waits for process 1 for 7000 ns and gives up; process 1 begins
/// after that. Step 9 is cancelled.
std::vector<process_trace> a_rank_that_stopped() {
  made_trace t{2, 1};
  t.graph().process_of_device = {0, 1};
  const handle_id merge[] = {t.op("all_reduce", 0, true),
                             t.op("all_reduce", 1, true)};
  const handle_id work[] = {t.op("work", 0), t.op("work", 1)};
  std::vector<process_trace> parts;
  for (std::uint32_t i : {0u, 1u}) {
    auto of = t;
    of.run_info().process = i;
    of.run_info().processes = 2;
    for (std::uint32_t s = 0; s < 8; ++s)
      of.step(s, s * 1000, s * 1000 + 900)
        .run(work[i], s, 0, s * 1000, s * 1000 + 500)
        .run(merge[i], s, 0, s * 1000 + 600, s * 1000 + 800);
    of.run(work[i], 8, 0, 8000, i == 0 ? 8500 : 15'600);
    if (i == 0)
      of.run(merge[0], 8, 0, 8600, 15'600)
        .event(event_kind::failure, 15'650, merge[0], 8);
    else
      of.run(merge[1], 8, 0, 15'700, 15'701);
    of.step(8, 8000, i == 0 ? 15'700 : 15'800, true);
    of.step(9, 15'900, 15'950, true);
    parts.push_back(of.done());
  }
  return parts;
}

} // namespace

TEST_CASE("failed and cancelled steps are none that count") {
  const auto parts = a_rank_that_stopped();
  CHECK(failed_steps(parts) == std::set<std::uint32_t>{8, 9});
  const timeline all{parts};
  CHECK(all.steps().size() == 8);
  CHECK(all.steady_steps().size() == 6);
  const op_graph graph{parts[0].graph};
  const auto s = summarize(parts, all, graph);
  CHECK(s.steps.count == 8);
  CHECK(s.steps.median_ns == 900);
  CHECK(s.failed_steps.size() == 2);
}

TEST_CASE("a failed step tells for whom it waited") {
  const auto parts = a_rank_that_stopped();
  const timeline all{parts};
  const op_graph graph{parts[0].graph};
  const auto found = find_failed_steps(parts, all, graph);
  REQUIRE(found.size() == 2);
  CHECK(found[0].step == 8);
  CHECK(found[0].ns == 7800);
  CHECK_FALSE(found[0].was_cancelled);
  CHECK(found[0].longest == 0); // all_reduce of process 0, not the longer work
  CHECK(found[0].longest_ns == 7000);
  CHECK(found[0].has_waited);
  CHECK(found[0].missing == std::vector<std::size_t>{1});
  CHECK(found[1].was_cancelled);
  CHECK(found[1].longest == no_handle);
}

TEST_CASE("a failed step of one process alone has no one to wait for") {
  made_trace t;
  const auto work = t.op("work");
  t.step(0, 0, 900, true).run(work, 0, 0, 100, 800);
  const std::vector parts{t.done()};
  const timeline all{parts};
  const op_graph graph{parts[0].graph};
  CHECK(all.steps().empty());
  const auto found = find_failed_steps(parts, all, graph);
  REQUIRE(found.size() == 1);
  CHECK(found[0].longest == work);
  CHECK(found[0].longest_ns == 700);
  CHECK_FALSE(found[0].has_waited);
  CHECK(found[0].missing.empty());
}

TEST_CASE("a trace that ends while others go on tells where") {
  made_trace t{2, 1};
  const auto work = t.op("work", 1);
  t.step(0, 0, 900).run(work, 0, 0, 0, 500);
  t.event(event_kind::step_begin, 1000, no_handle, 1);
  t.event(event_kind::step_begin, 1100, no_handle, 2);
  t.run(work, 1, 0, 1200, 1500);
  std::vector<process_trace> parts{t.done(), t.done()};
  CHECK(find_ended_traces(parts).empty()); // none was closed
  parts[0].is_complete = true;
  const auto found = find_ended_traces(parts);
  REQUIRE(found.size() == 1);
  CHECK(found[0].process == 1);
  CHECK(found[0].step == 1u);
  CHECK(found[0].is_within);
  CHECK(found[0].op == work);
  CHECK(found[0].has_op_ended);
  parts[1].is_complete = true;
  CHECK(find_ended_traces(parts).empty());
}

TEST_CASE("warm-up is what the run began with, not what the trace did") {
  made_trace t;
  for (std::uint32_t s = 50; s < 56; ++s)
    t.step(s, s * 1000, s * 1000 + 900);
  const timeline all{std::vector{t.done()}};
  CHECK(all.steady_steps().size() == 6);
}

} // TEST_SUITE("trace.failed_steps")
