// SPDX-License-Identifier: Apache-2.0
#include "trace/analysis/made_trace.hpp"

#include <troupe/trace/analysis/slow_runs.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

using namespace troupe;
using namespace troupe::trace;
using namespace troupe::test;

TEST_SUITE("trace.slow_runs") {

TEST_CASE("a slow run is named, and its worker if that had no core") {
  made_trace t{1, 2};
  t.run_info().level = trace_level::ops;
  const auto op = t.op("op"), merge = t.op("all_reduce", 0, true);
  const std::uint64_t ms = 1'000'000;
  std::uint64_t now = 0;
  const auto reading = [&](handle_id whom, std::uint64_t at, std::uint64_t ns,
                           std::uint32_t step) {
    t.event(event_kind::core_wait, at, whom, step, recorder::no_worker,
            no_handle, ns);
  };
  for (std::uint32_t s = 0; s < 12; ++s) {
    // Step 4: preempted; 6: a helper was; 8: throttled; 10: slow by itself.
    const bool is_slow = s >= 4 && s % 2 == 0 && s <= 10;
    const auto ns = is_slow ? 10 * ms : 2 * ms;
    t.step(s, now, now + ns + 20 * ms);
    t.run(op, s, 0, now, now + ns);
    t.run(merge, s, 0, now + ns, now + ns + (s == 5 ? 15 : 1) * ms);
    if (s == 6) {
      t.event(event_kind::help_begin, now + ms, op, s, 1);
      t.event(event_kind::help_end, now + ns - ms, op, s, 1);
    }
    now += ns + 20 * ms;
    reading(0, now - 1, s == 4 ? 8 * ms : s == 10 ? ms : 0, s);
    reading(1, now - 1, s == 6 || s == 10 ? 7 * ms : 0, s);
    reading(no_handle, now - 1, s == 8 ? 8 * ms : 0, s);
  }
  const auto made = t.done();
  const std::vector parts{made};
  const timeline all{parts};
  const op_graph graph{made.graph};
  const auto list = find_slow_runs(parts, all, graph);
  const auto& found = list.worst;
  CHECK(list.count == 4);
  CHECK(list.excess_ns == 4 * 8 * ms);
  REQUIRE(found.size() == 4); // the collective is told of as a wait
  const auto in = [&](std::uint32_t step) -> const slow_run& {
    return *std::ranges::find(found, step, &slow_run::step);
  };
  CHECK(in(4).op == op);
  CHECK(in(4).ns == 10 * ms);
  CHECK(in(4).median_ns == 2 * ms);
  CHECK(in(4).cause == slow_cause::preempted);
  CHECK(in(4).worker == 0);
  CHECK(in(4).without_core_ns == 8 * ms);
  CHECK(in(4).around_ns == 30 * ms); // from the reading before to that after
  CHECK(in(6).cause == slow_cause::preempted);
  CHECK(in(6).worker == 1);
  CHECK(in(8).cause == slow_cause::throttled);
  CHECK(in(10).cause == slow_cause::unknown);
  // One step alone.
  const auto one = find_slow_runs(parts, all, graph, &all.steps()[6]).worst;
  REQUIRE(one.size() == 1);
  CHECK(one[0].step == 6);
}

} // TEST_SUITE("trace.slow_runs")
