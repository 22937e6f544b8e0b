// SPDX-License-Identifier: Apache-2.0
#include "trace/analysis/made_trace.hpp"

#include <troupe/trace/join.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

using namespace troupe;
using namespace troupe::trace;
using namespace troupe::test;

TEST_SUITE("trace.join") {

TEST_CASE("traces of ranks become one, with workers numbered through") {
  made_trace t{2, 2};
  t.graph().process_of_device = {0, 1};
  const auto a = t.op("a", 0), b = t.op("b", 1);
  auto other = t;
  t.graph().handles[a].messages = 3;
  other.graph().handles[b].messages = 4;
  other.run_info().process = 1;
  t.step(0, 0, 900).run(a, 0, 1, 100, 300);
  other.step(0, 50, 1000).run(b, 0, 1, 200, 400);
  other.event(event_kind::core_wait, 500, 1, 0, recorder::no_worker, no_handle,
              7);
  other.event(event_kind::core_wait, 501, no_handle, 0, recorder::no_worker,
              no_handle, 7);
  auto first = t.done(), second = other.done();
  for (auto* part : {&first, &second}) {
    part->is_complete = true;
    part->phases.push_back({"check", -10, -5});
    part->actors.resize(2);
    part->message_types = {"(int)"};
  }
  second.lost = 5;
  second.events.push_back({600, mail_id{8, 0}.amount(), no_actor, 1, 0,
                           recorder::no_worker, event_kind::mail});
  std::ranges::stable_sort(second.events, {}, &trace_event::time);
  const auto made = join({first, second});
  CHECK(std::ranges::is_sorted(made.events, {}, &trace_event::time));
  CHECK(made.run.workers == 4);
  CHECK(made.lost == 5);
  CHECK(made.is_complete);
  CHECK(made.graph.handles[a].messages == 3);
  CHECK(made.graph.handles[b].messages == 4);
  REQUIRE(made.phases.size() == 2);
  CHECK(made.phases[1].name == "rank 1: check");
  CHECK(made.actors.size() == 4);
  const auto of = [&](event_kind kind) {
    std::vector<trace_event> found;
    std::ranges::copy_if(made.events, std::back_inserter(found),
                         [kind](auto& e) { return e.kind == kind; });
    return found;
  };
  REQUIRE(of(event_kind::step_begin).size() == 1);
  CHECK(of(event_kind::step_begin)[0].time == 0);
  REQUIRE(of(event_kind::step_end).size() == 1);
  CHECK(of(event_kind::step_end)[0].time == 1000);
  CHECK(of(event_kind::run_begin)[0].worker == 1);
  CHECK(of(event_kind::run_begin)[1].worker == 3);
  CHECK(of(event_kind::core_wait)[0].from == 3);
  CHECK(of(event_kind::core_wait)[1].from == no_handle);
  const auto mail = of(event_kind::mail).at(0);
  CHECK(mail.to == 3);
  CHECK(mail.from == no_actor);
  CHECK(mail_id::of(mail.amount).type == 1);
  CHECK(mail_id::of(mail.amount).message == 8);
}

TEST_CASE("a single trace is left as it is") {
  made_trace t;
  t.step(0, 0, 10);
  auto one = t.done();
  one.phases.push_back({"check", -10, -5});
  const auto same = join({one});
  CHECK(same.events.size() == 2);
  CHECK(same.phases[0].name == "check");
}

} // TEST_SUITE("trace.join")
