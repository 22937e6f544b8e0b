// SPDX-License-Identifier: Apache-2.0
#include "trace/analysis/made_trace.hpp"

#include <troupe/trace/analysis/critical_path.hpp>

#include <doctest/doctest.h>

#include <string>
#include <utility>
#include <vector>

using namespace troupe;
using namespace troupe::trace;
using namespace troupe::test;

TEST_SUITE("trace.critical_path") {

namespace {

struct expected_part {
  path_kind kind;
  handle_id op;
  std::uint64_t begin, end;
};

void check_path(const process_trace& t, std::size_t step,
                const std::vector<expected_part>& expected) {
  const std::vector<process_trace> parts{t};
  const timeline all{parts};
  const op_graph graph{t.graph};
  REQUIRE(all.steps().size() > step);
  const auto& times = all.steps()[step];
  const auto path = find_critical_path(all, graph, times);
  CHECK(path.total() == times.ns());
  REQUIRE(path.parts.size() == expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    CAPTURE(i);
    CHECK(path.parts[i].kind == expected[i].kind);
    CHECK(path.parts[i].op == expected[i].op);
    CHECK(path.parts[i].begin == expected[i].begin);
    CHECK(path.parts[i].end == expected[i].end);
  }
}

} // namespace

TEST_CASE("the path goes through the op whose message was the last one") {
  made_trace t{1, 2};
  const auto slow = t.op("slow"), fast = t.op("fast"), last = t.op("last");
  const auto x = t.var("x"), y = t.var("y");
  t.edge(slow, x).edge(fast, y).edge(x, last).edge(y, last);
  t.step(0, 100, 1000);
  t.run(slow, 0, 0, 110, 700).run(fast, 0, 1, 105, 300);
  t.run(last, 0, 1, 720, 990);
  check_path(t.done(), 0,
             {{path_kind::worker, slow, 100, 110},
              {path_kind::compute, slow, 110, 700},
              {path_kind::worker, last, 700, 720},
              {path_kind::compute, last, 720, 990},
              {path_kind::ending, no_handle, 990, 1000}});
}

TEST_CASE("an op that was ready was held up by what its worker ran") {
  made_trace t{3, 2};
  const auto first = t.op("first", 0), other = t.op("other", 1);
  const auto beside = t.op("beside", 2);
  t.step(0, 0, 1000);
  t.run(first, 0, 0, 5, 600).run(other, 0, 0, 620, 1000);
  t.run(beside, 0, 1, 0, 610); // on another worker
  check_path(t.done(), 0,
             {{path_kind::worker, first, 0, 5},
              {path_kind::compute, first, 5, 600},
              {path_kind::worker, other, 600, 620},
              {path_kind::compute, other, 620, 1000}});
}

TEST_CASE("what a worker ran before an op was ready did not hold it up") {
  made_trace t{1, 2};
  const auto early = t.op("early"), slow = t.op("slow"), last = t.op("last");
  t.edge(slow, last);
  t.step(0, 0, 1000);
  t.run(early, 0, 0, 0, 300).run(slow, 0, 1, 0, 600).run(last, 0, 0, 640, 1000);
  check_path(t.done(), 0,
             {{path_kind::compute, slow, 0, 600},
              {path_kind::worker, last, 600, 640},
              {path_kind::compute, last, 640, 1000}});
}

TEST_CASE("an op that was ready was held up by what its stream ran") {
  // As its stream was busy on worker 1, worker 0 filled the time with the next
  // step, until its stream was free and a little longer.
  made_trace t{2, 2};
  const auto work = t.op("work", 1), early = t.op("early", 0);
  const auto merge = t.op("merge", 0), last = t.op("last", 0);
  const auto filler = t.op("filler", 1);
  t.edge(work, merge).edge(early, last);
  t.step(0, 0, 1000).step(1, 650, 2000);
  t.run(work, 0, 1, 0, 500).run(early, 0, 0, 0, 200);
  t.run(merge, 0, 1, 510, 900);
  SUBCASE("and its worker ran nothing") {
    t.run(filler, 1, 0, 660, 890).run(last, 0, 0, 920, 1000);
    check_path(t.done(), 0,
               {{path_kind::compute, work, 0, 500},
                {path_kind::worker, merge, 500, 510},
                {path_kind::compute, merge, 510, 900},
                {path_kind::worker, last, 900, 920},
                {path_kind::compute, last, 920, 1000}});
  }
  SUBCASE("and then by what its worker ran") {
    t.run(filler, 1, 0, 660, 915).run(last, 0, 0, 920, 1000);
    check_path(t.done(), 0,
               {{path_kind::compute, work, 0, 500},
                {path_kind::worker, merge, 500, 510},
                {path_kind::compute, merge, 510, 900},
                {path_kind::compute, filler, 900, 915},
                {path_kind::worker, last, 915, 920},
                {path_kind::compute, last, 920, 1000}});
  }
}

TEST_CASE("an op that its worker left for the next step waited for a worker") {
  made_trace t{2, 2};
  const auto work = t.op("work", 0), last = t.op("last", 0);
  const auto filler = t.op("filler", 1);
  t.edge(work, last);
  t.step(0, 0, 1000).step(1, 650, 2000);
  t.run(work, 0, 1, 0, 500);
  t.run(filler, 1, 0, 660, 900).run(last, 0, 0, 910, 1000);
  check_path(t.done(), 0,
             {{path_kind::compute, work, 0, 500},
              {path_kind::worker, last, 500, 650},
              {path_kind::worker, filler, 650, 660},
              {path_kind::compute, filler, 660, 900},
              {path_kind::worker, last, 900, 910},
              {path_kind::compute, last, 910, 1000}});
}

TEST_CASE("a stream that runs several ops at once holds none up") {
  made_trace t{1, 2};
  const auto first = t.op("first"), beside = t.op("beside"),
             last = t.op("last");
  t.edge(first, last);
  t.step(0, 0, 1000);
  t.run(first, 0, 0, 0, 400).run(beside, 0, 1, 0, 590);
  t.run(last, 0, 0, 600, 1000);
  check_path(t.done(), 0,
             {{path_kind::compute, first, 0, 400},
              {path_kind::worker, last, 400, 600},
              {path_kind::compute, last, 600, 1000}});
}

TEST_CASE("a step's time begins when the step before has ended") {
  made_trace t{1, 2};
  const auto a = t.op("a"), b = t.op("b");
  t.edge(a, b);
  t.step(0, 0, 500).step(1, 100, 900);
  t.run(a, 0, 0, 0, 100).run(b, 0, 0, 100, 500);
  t.run(a, 1, 1, 300, 600).run(b, 1, 1, 600, 900);
  check_path(
    t.done(), 1,
    {{path_kind::compute, a, 500, 600}, {path_kind::compute, b, 600, 900}});
}

TEST_CASE("a pending launch counts until its results are there") {
  made_trace t;
  const auto a = t.op("all_reduce", 0, true), b = t.op("b");
  t.edge(a, b);
  t.step(0, 0, 900);
  t.run(a, 0, 0, 0, 10).event(event_kind::completion, 500, a, 0);
  t.run(b, 0, 0, 500, 900);
  check_path(
    t.done(), 0,
    {{path_kind::merging, a, 0, 500}, {path_kind::compute, b, 500, 900}});
}

TEST_CASE("a rank that waits for the last one leads the path there") {
  // Rank 0 begins at 100 and waits until rank 1 begins at 600.
  made_trace t{2, 2};
  t.graph().process_of_device = {0, 1};
  const auto r0 = t.op("all_reduce", 0, true), r1 = t.op("all_reduce", 1, true);
  const auto work = t.op("work", 1), after = t.op("after", 0);
  t.edge(work, r1).edge(r0, after);
  t.step(0, 0, 1000);
  t.run(r0, 0, 0, 100, 800).run(work, 0, 1, 0, 600).run(r1, 0, 1, 600, 800);
  t.run(after, 0, 0, 800, 1000);
  check_path(t.done(), 0,
             {{path_kind::compute, work, 0, 600},
              {path_kind::merging, r0, 600, 800},
              {path_kind::compute, after, 800, 1000}});
}

TEST_CASE("a launch that kept a worker busy leads to nothing later") {
  // In step 0, rank 0 launches what comes from step 1 of rank 1.
  made_trace t{2, 1};
  t.graph().process_of_device = {0, 1};
  const auto ahead = t.op("all_reduce", 0, true),
             late = t.op("all_reduce", 1, true);
  const auto first = t.op("first", 0), last = t.op("last", 0);
  t.edge(first, last);
  t.step(0, 0, 500).step(1, 0, 1000);
  t.run(first, 0, 0, 0, 300).run(ahead, 1, 0, 300, 310);
  t.run(last, 0, 0, 310, 500).run(late, 1, 0, 900, 1000);
  t.event(event_kind::completion, 1000, ahead, 1);
  check_path(t.done(), 0,
             {{path_kind::compute, first, 0, 300},
              {path_kind::merging, ahead, 300, 310},
              {path_kind::compute, last, 310, 500}});
}

TEST_CASE(
  "a collective that began during an earlier one leads the path there") {
  made_trace t;
  const auto work = t.op("work"), a = t.op("all_reduce", 0, true),
             b = t.op("all_reduce", 0, true);
  t.edge(work, a).edge(a, b);
  t.step(0, 0, 900);
  t.run(work, 0, 0, 0, 100).run(a, 0, 0, 100, 110).run(b, 0, 0, 110, 120);
  t.event(event_kind::completion, 600, a, 0);
  t.event(event_kind::completion, 900, b, 0);
  check_path(t.done(), 0,
             {{path_kind::compute, work, 0, 100},
              {path_kind::merging, a, 100, 600},
              {path_kind::merging, b, 600, 900}});
}

TEST_CASE("without runs of ops the path says nothing") {
  made_trace t;
  t.step(0, 0, 1000);
  check_path(t.done(), 0, {{path_kind::ending, no_handle, 0, 1000}});
}

TEST_CASE("the median step is none that ended right behind the one before") {
  made_trace t;
  const auto a = t.op("a");
  std::uint64_t begin = 0, now = 0;
  for (std::uint32_t s = 0; s < 13; ++s) { // after two that warm up
    const auto next = now + (s % 2 == 0 ? 2 : 1000);
    t.step(s, begin, next).run(a, s, 0, now, next);
    begin = std::exchange(now, next);
  }
  const std::vector<process_trace> parts{t.done()};
  const timeline all{parts};
  REQUIRE(median_step(all));
  CHECK(median_step(all)->ns() == 1000);
}

TEST_CASE("the median step is one of the whole steady steps") {
  made_trace t;
  const auto a = t.op("a");
  const std::vector<std::uint64_t> times{900, 800, 50, 10, 30, 20};
  std::uint64_t now = 0;
  for (std::uint32_t s = 0; s < times.size(); ++s) {
    t.step(s, now, now + times[s]);
    if (s != 5) // its run was lost
      t.run(a, s, 0, now, now + times[s]);
    now += times[s];
  }
  const std::vector<process_trace> parts{t.done()};
  const timeline all{parts};
  REQUIRE(median_step(all));
  CHECK(median_step(all)->step == 4);
  REQUIRE(slowest_step(all));
  CHECK(slowest_step(all)->step == 2); // not a slower one that warms up
  CHECK_FALSE(all.steps()[5].is_whole);
}

} // TEST_SUITE("trace.critical_path")
