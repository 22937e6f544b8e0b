// SPDX-License-Identifier: Apache-2.0
#include "trace/analysis/made_trace.hpp"

#include <troupe/trace/analysis/summary.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

using namespace troupe;
using namespace troupe::trace;
using namespace troupe::test;

TEST_SUITE("trace.summary") {

namespace {

trace_summary summary_of(const std::vector<process_trace>& parts) {
  const timeline all{parts};
  const op_graph graph{parts.front().graph};
  return summarize(parts, all, graph);
}

trace_summary summary_of(const process_trace& t) {
  return summary_of(std::vector{t});
}

} // namespace

TEST_CASE("step times are quantiles of the steps after the first two") {
  made_trace t;
  std::uint64_t now = 0;
  for (std::uint32_t s = 0; s < 13; ++s) {
    const std::uint64_t ns = s < 2 ? 90'000 : 100 * (s - 1); // 100 to 1100
    t.step(s, now, now + ns);
    now += ns;
  }
  const auto s = summary_of(t.done()).steps;
  CHECK(s.count == 13);
  CHECK(s.counted == 11);
  CHECK(s.mean_ns == 600);
  CHECK(s.median_ns == 600);
  CHECK(s.p10_ns == 200);
  CHECK(s.p90_ns == 1000);
  CHECK(s.between == 0);
}

TEST_CASE("step times of steps in flight together are means of these") {
  made_trace t; // a step ends 900 or 100 ns after the one before
  for (std::uint32_t s = 0; s < 12; ++s) {
    const std::uint64_t pair = s / 2 * 1000;
    t.step(s, pair, s % 2 == 0 ? pair + 900 : pair + 1000);
  }
  const auto s = summary_of(t.done()).steps;
  CHECK(s.counted == 10);
  CHECK(s.mean_ns == 500);
  CHECK(s.median_ns == 500);
  CHECK(s.p10_ns == 500);
  CHECK(s.p90_ns == 500);
}

TEST_CASE("time in which no step was under way is between steps") {
  made_trace t;
  for (std::uint32_t s = 0; s < 6; ++s)
    t.step(s, s * 1000, s * 1000 + 500);
  // of 3500 ns: 4 steps of 500
  CHECK(summary_of(t.done()).steps.between == doctest::Approx(3.0 / 7));
}

TEST_CASE("idle, self time and overlap are shares of the counted time") {
  made_trace t{2, 2};
  const auto work = t.op("work", 0), merge = t.op("all_reduce", 1, true);
  for (std::uint32_t s = 0; s < 6; ++s) {
    const std::uint64_t at = s * 1000;
    t.step(s, at, at + 1000);
    t.run(work, s, 0, at, at + 600);        // alone until 400
    t.run(merge, s, 1, at + 400, at + 900); // with work until 600
    t.event(event_kind::help_begin, at + 100, work, s, 1);
    t.event(event_kind::help_end, at + 200, work, s, 1);
  }
  const auto s = summary_of(t.done());
  REQUIRE(s.workers.size() == 2);
  CHECK(s.workers[0].idle == doctest::Approx(0.4));
  CHECK(s.workers[1].idle == doctest::Approx(0.4)); // 500 + 100 of help
  REQUIRE(s.streams.size() == 2);
  CHECK(s.streams[0].device == 0);
  CHECK(s.streams[0].stream == "compute");
  CHECK(s.streams[0].idle == doctest::Approx(0.4)); // helps do not count
  CHECK(s.streams[1].device == 1);
  CHECK(s.streams[1].stream == "collective");
  CHECK(s.streams[1].idle == doctest::Approx(0.5));
  REQUIRE(s.types.size() == 2);
  CHECK(s.types[0].type == "work");
  CHECK(s.types[0].count == 1);
  CHECK(s.types[0].self_ns == 700);
  CHECK(s.types[0].share == doctest::Approx(7.0 / 12));
  REQUIRE(s.overlap.size() == 1);
  CHECK(s.overlap[0].compute_ns == 600);
  CHECK(s.overlap[0].merge_ns == 500);
  CHECK(s.overlap[0].share() == doctest::Approx(0.4));
}

TEST_CASE("numbers of ops are of the steps in which all ops were recorded") {
  made_trace t{2, 2};
  const auto first = t.op("first", 0), second = t.op("second", 0);
  const auto sent = t.var("sent");
  for (std::uint32_t s = 0; s < 20; ++s) {
    const std::uint64_t at = s * 1000;
    t.step(s, at, at + 1000);
    // The level is raised within step 7 and lowered within step 11; and again
    // it is raised from step 14 to 15.
    if (s > 7 && s <= 11)
      t.run(first, s, 0, at, at + 200);
    if (s >= 7 && s < 11)
      t.run(second, s, 0, at + 500, at + 800);
    if (s == 14)
      t.run(first, s, 0, at, at + 200).run(second, s, 0, at + 500, at + 900);
    if (s >= 8 && s < 11)
      t.event(event_kind::message, at + 200, first, s, 0, sent);
  }
  const auto s = summary_of(t.done());
  CHECK(s.steps.counted == 18);
  CHECK(s.op_steps == 4); // 8, 9, 10, 14
  REQUIRE(s.types.size() == 2);
  CHECK(s.types[0].type == "second");
  CHECK(s.types[0].count == 1);
  CHECK(s.types[0].self_ns == (3 * 300 + 400) / 4.0);
  CHECK(s.types[1].self_ns == 200);
  CHECK(s.workers[0].idle == doctest::Approx(1 - (3 * 500 + 600) / 4000.0));
  CHECK(s.overlap[0].compute_ns == (3 * 500 + 600) / 4.0);
  std::size_t waits = 0;
  for (const auto& w : s.waits)
    waits += w.count;
  CHECK(waits == 4); // before `second`
  REQUIRE(s.path);
  CHECK((s.path->step == 14 || (s.path->step >= 8 && s.path->step <= 10)));
  CHECK(s.messages.total() == 3);
  CHECK(s.message_steps == 3);
}

TEST_CASE("without a whole step after the first two, the first ones count") {
  made_trace t;
  const auto op = t.op("op");
  for (std::uint32_t s = 0; s < 6; ++s)
    t.step(s, s * 1000, s * 1000 + 1000);
  t.run(op, 1, 0, 1000, 1700);
  const auto s = summary_of(t.done());
  CHECK(s.op_steps == 1);
  REQUIRE(s.types.size() == 1);
  CHECK(s.types[0].self_ns == 700);
}

TEST_CASE("a wait says who was waited for and why") {
  made_trace t{2, 2};
  const auto slow = t.op("slow", 0), here = t.op("here", 1),
             next = t.op("next", 1);
  t.edge(slow, next);
  for (std::uint32_t s = 0; s < 4; ++s) {
    const std::uint64_t at = s * 1000;
    t.step(s, at, at + 1000);
    t.run(slow, s, 0, at, at + 700).run(here, s, 1, at, at + 300);
    t.run(next, s, 1, at + 750, at + 1000); // ready at 700, begins at 750
  }
  const auto waits = summary_of(t.done()).waits;
  REQUIRE(waits.size() == 2);
  CHECK(waits[0].op == next);
  CHECK(waits[0].waited_for == slow);
  CHECK(waits[0].reason == wait_reason::message);
  CHECK(waits[0].count == 2);
  CHECK(waits[0].total_ns == 2 * 400);
  CHECK(waits[1].reason == wait_reason::worker);
  CHECK(waits[1].total_ns == 2 * 50);
}

TEST_CASE("a rank that came early waits for the rank that came last") {
  made_trace t{2, 2};
  t.graph().process_of_device = {0, 1};
  const auto r0 = t.op("all_reduce", 0, true), r1 = t.op("all_reduce", 1, true);
  t.step(0, 0, 1000).run(r0, 0, 0, 0, 900).run(r1, 0, 1, 800, 900);
  const auto waits = summary_of(t.done()).waits;
  REQUIRE(waits.size() == 1);
  CHECK(waits[0].op == r0);
  CHECK(waits[0].waited_for == r1);
  CHECK(waits[0].reason == wait_reason::rank);
  CHECK(waits[0].longest_ns == 800);
}

TEST_CASE("a wait for a parcel lasts until it arrives, and says what came") {
  made_trace t{2, 1};
  t.graph().process_of_device = {0, 1};
  const auto send = t.op("send", 0), recv = t.op("recv", 1);
  t.edge(send, recv);
  auto other = t;
  other.run_info().process = 1;
  // The value is sent before the `recv` begins: what it waits for is the way.
  t.step(0, 0, 2000).run(send, 0, 0, 0, 200);
  t.event(event_kind::parcel_sent, 100, send, 0, 0, recv, 4000);
  other.step(0, 0, 2000).run(recv, 0, 0, 500, 600);
  other.event(event_kind::parcel_arrived, 1100, send, 0, 0, recv, 4000)
    .event(event_kind::completion, 1200, recv, 0);
  const auto waits = summary_of({t.done(), other.done()}).waits;
  const auto found =
    std::ranges::find(waits, wait_reason::rank, &op_wait::reason);
  REQUIRE(found != waits.end());
  CHECK(found->op == recv);
  CHECK(found->waited_for == send);
  CHECK(found->total_ns == 600);
  CHECK(found->parcels == 1);
  CHECK(found->bytes == 4000);
  CHECK(found->travel_ns == 1000); // 4000 MB/s
}

TEST_CASE("a wait for a rank of a collective says what was merged, and how "
          "long that took") {
  made_trace t{2, 1};
  t.graph().process_of_device = {0, 1};
  const auto r0 = t.op("all_reduce", 0, true), r1 = t.op("all_reduce", 1, true);
  auto other = t;
  other.run_info().process = 1;
  t.step(0, 0, 1000).run(r0, 0, 0, 100, 900);
  other.step(0, 0, 1000).run(r1, 0, 0, 700, 900);
  other.event(event_kind::merge_begin, 700, r1, 0, 0, no_handle, 64);
  const auto waits = summary_of({t.done(), other.done()}).waits;
  REQUIRE(waits.size() == 1);
  CHECK(waits[0].op == r0);
  CHECK(waits[0].waited_for == r1);
  CHECK(waits[0].total_ns == 600);
  CHECK(waits[0].bytes == 64);
  CHECK(waits[0].travel_ns == 200);
}

TEST_CASE("messages are counted by what sends and receives them") {
  made_trace t;
  const auto op = t.op("op"), other = t.op("other");
  const auto v = t.var("v"), w = t.var("w");
  const auto send = [&](handle_id from, handle_id to) {
    t.event(event_kind::message, 1, from, 0, 0, to);
  };
  send(no_handle, op);
  send(no_handle, v);
  send(op, v);
  send(op, v);
  send(v, other);
  send(op, other);
  send(v, w);
  const auto s = summary_of(t.done());
  CHECK(s.level == trace_level::messages);
  CHECK(s.messages.start_to_op == 1);
  CHECK(s.messages.start_to_var == 1);
  CHECK(s.messages.op_to_var == 2);
  CHECK(s.messages.var_to_op == 1);
  CHECK(s.messages.op_to_op == 1);
  CHECK(s.messages.var_to_var == 1);
  CHECK(s.messages.total() == 7);
  t.step(0, 0, 10);
  t.event(event_kind::message, 9, op, 1, 0, other); // opens the next step
  CHECK(summary_of(t.done()).messages.total() == 7);
}

TEST_CASE("a memory peak names the temporaries that held it") {
  made_trace t;
  const auto op = t.op("op");
  const auto x = t.var("x"), y = t.var("y"), z = t.var("z");
  const auto fed = t.var("fed"), rate = t.var("learning_rate");
  const auto grows = [&](std::uint64_t at, handle_id v, std::uint64_t bytes) {
    t.event(event_kind::allocation, at, op, 0, 0, v, bytes);
  };
  const auto shrinks = [&](std::uint64_t at, handle_id v, std::uint64_t bytes) {
    t.event(event_kind::deallocation, at, op, 0, 0, v, bytes);
  };
  t.event(event_kind::feed, 1, fed, 0, 0, no_handle, 10);
  t.event(event_kind::feed, 1, rate, 0, 0, no_handle, 1000); // never freed
  grows(2, x, 100);
  grows(3, y, 300); // 410: the peak
  shrinks(4, x, 100);
  shrinks(4, fed, 10);
  grows(5, z, 50);
  shrinks(6, y, 300);
  shrinks(7, z, 90); // more than the trace has seen
  grows(8, z, 20);
  const auto peaks = summary_of(t.done()).memory;
  REQUIRE(peaks.size() == 1);
  CHECK(peaks[0].bytes == 410);
  CHECK(peaks[0].time == 3);
  REQUIRE(peaks[0].holders.size() == 3);
  CHECK(peaks[0].holders[0].variable == y);
  CHECK(peaks[0].holders[1].variable == x);
  CHECK(peaks[0].holders[2].variable == fed);
}

TEST_CASE("the level is the one asked for, or that of the events") {
  made_trace t;
  const auto op = t.op("op");
  t.step(0, 0, 10);
  auto made = t.done();
  CHECK(summary_of(made).level == trace_level::messages);
  made.run.level = trace_level::steps;
  CHECK(summary_of(made).level == trace_level::steps);
  t.run(op, 0, 0, 0, 10); // another reader asked for more
  made = t.done();
  made.run.level = trace_level::steps;
  CHECK(summary_of(made).level == trace_level::ops);
}

TEST_CASE("lost events are added up") {
  auto made = made_trace{}.done();
  made.lost = 7;
  CHECK(summary_of(made).lost == 7);
}

TEST_CASE("an empty trace has an empty summary") {
  const auto s = summary_of(made_trace{}.done());
  CHECK(s.steps.count == 0);
  CHECK_FALSE(s.path);
  CHECK(s.types.empty());
  CHECK(s.workers.empty());
}

TEST_CASE("the first failure in time is told, and how many there are") {
  made_trace t;
  const auto a = t.op("a"), b = t.op("b");
  CHECK(summary_of(t.done()).failures.count == 0);
  t.step(0, 0, 1000);
  t.event(event_kind::failure, 700, a, 1).event(event_kind::failure, 300, b, 0);
  const auto failures = summary_of(t.done()).failures;
  CHECK(failures.count == 2);
  CHECK(failures.op == b);
  CHECK(failures.step == 0);
}

} // TEST_SUITE("trace.summary")
