// SPDX-License-Identifier: Apache-2.0
#include <troupe/trace/analysis/actor_account.hpp>
#include <troupe/trace/analysis/summary.hpp>

#include <trace/export/hand_made_trace.hpp>

#include <troupe/base/actor_table.hpp>

#include <doctest/doctest.h>

using namespace troupe;
using namespace troupe::trace;
using namespace troupe::test;

TEST_SUITE("trace.actor_account") {

namespace {

actor_account account_of(const process_trace& t) {
  actor_account made;
  for (const auto& e : t.events)
    made.apply(e);
  return made;
}

} // namespace

TEST_CASE("a mailbox grows with mails and is what its actor has found") {
  auto t = two_ops();
  actor_list a{t};
  a.mail(10, 1, 0, 1).mail(20, 1, 0, 2);
  CHECK_FALSE(account_of(t).of(0).waiting); // older ones may be there
  a.begin(30, 0, 1, 4);
  CHECK(account_of(t).of(0).waiting == 4);
  CHECK(account_of(t).of(0).handles_since == 30);
  a.mail(40, 1, 0, 3).end(50, 0);
  const auto does = account_of(t).of(0);
  CHECK(does.waiting == 5);
  CHECK(does.most_waiting == 5); // four, and the one that it took
  CHECK(does.received == 3);
  CHECK(does.handled == 1);
  CHECK(does.busy_ns == 20);
  CHECK_FALSE(does.handles_since);
  CHECK(account_of(t).of(1).received == 0); // it only sends
}

TEST_CASE("a skipped message goes back and is not handled") {
  auto t = two_ops();
  actor_list a{t};
  a.begin(10, 0, 1, 0).end(15, 0, handling_result::skipped);
  CHECK(account_of(t).of(0).waiting == 1);
  a.begin(20, 0, 2, 1).end(40, 0, handling_result::failed);
  const auto does = account_of(t).of(0);
  CHECK(does.handled == 1);
  CHECK(does.skipped == 1);
  CHECK(does.waiting == 1);
  CHECK(does.busy_ns == 25);
  CHECK(does.longest_ns == 20);
}

TEST_CASE("ends without begin, and actors that cannot be, change nothing") {
  auto t = two_ops();
  actor_list{t}
    .end(10, 0)
    .mail(20, 0, no_actor, 1)
    .mail(30, 0, actor_table::most_actors, 1);
  event_list{t}.run(40, 50, conv).message(60, conv, image);
  const auto account = account_of(t);
  CHECK(account.actors().size() == 1);
  CHECK(account.of(0).handled == 0);
}

TEST_CASE("a summary has the actors that did something, the busiest first") {
  auto t = two_ops();
  t.actors = {{.name = "idle"},
              {.name = "reporter", .id = 7, .is_recorded = true},
              {.name = "feeder", .id = 8, .is_recorded = true},
              {.name = "lost", .end_ns = 5, .has_failed = true, .reason = "x"}};
  event_list{t}.add(0, event_kind::step_begin);
  actor_list{t}
    .mail(10, 2, 1, 1)
    .begin(20, 1, 1, 0)
    .end(30, 1)
    .begin(40, 2, 2, 8)
    .end(90, 2);
  event_list{t}.add(100, event_kind::step_end);
  const op_graph graph{t.graph};
  const timeline all{{&t, 1}};
  const auto s = summarize({&t, 1}, all, graph);
  REQUIRE(s.actors.size() == 3);
  CHECK(s.actors[0].actor == 2);
  CHECK(s.actors[0].busy == doctest::Approx(0.5));
  CHECK(s.actors[0].activity.most_waiting == 9);
  CHECK(s.actors[1].actor == 1);
  CHECK(s.actors[1].busy == doctest::Approx(0.1));
  CHECK(s.actors[2].actor == 3);
  CHECK(s.messages.total() == 0); // those are of handles
}

} // TEST_SUITE("trace.actor_account")
