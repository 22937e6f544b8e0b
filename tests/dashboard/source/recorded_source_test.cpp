// SPDX-License-Identifier: Apache-2.0
#include <troupe/dashboard/source/recorded_source.hpp>

#include <troupe/dashboard/picture/live_picture.hpp>

#include <support/caught.hpp>
#include <trace/export/hand_made_trace.hpp>

#include <doctest/doctest.h>

#include <chrono>

using namespace troupe;
using namespace troupe::dashboard;
using namespace troupe::test;
using namespace std::chrono_literals;

TEST_SUITE("dashboard.recorded_source") {

namespace {

using clock = recorded_source::clock;

clock::time_point shown_time; // what the clock of these tests shows

clock::time_point time_of_test() {
  return shown_time;
}

/// Two steps with three ops each.
trace::process_trace two_steps() {
  auto t = two_ops();
  std::uint64_t ns = 0;
  for (std::uint32_t step = 0; step < 2; ++step) {
    event_list e{t};
    e.on(0, step).add(ns, event_kind::step_begin);
    for (auto op : {conv, update, conv})
      e.run(ns + 10, ns + 20, op), ns += 20;
    e.add(ns, event_kind::step_end);
    ns += 10;
  }
  return t;
}

std::size_t steps_in(const std::vector<trace_event>& events) {
  std::size_t n = 0;
  for (const auto& e : events)
    n += e.kind == event_kind::step_end;
  return n;
}

std::size_t ops_in(const std::vector<trace_event>& events) {
  std::size_t n = 0;
  for (const auto& e : events)
    n += e.kind == event_kind::run_begin;
  return n;
}

} // namespace

TEST_CASE("at first all events of a file are there") {
  recorded_source s{{two_steps()}};
  CHECK(s.state() == run_state::running);
  CHECK(steps_in(s.take()) == 2);
  CHECK(s.take().empty());
  CHECK(s.state() == run_state::ended);
  CHECK(s.now_ns() == two_steps().events.back().time);
}

TEST_CASE("a run that is rewound plays, and goes on step by step") {
  recorded_source s{{two_steps()}, &time_of_test};
  s.take();
  const auto generation = s.generation();
  s.obey(command::rewind, 0ms);
  CHECK(s.generation() > generation);
  CHECK(s.state() == run_state::running);
  CHECK(steps_in(s.take()) == 0); // no time has passed
  s.obey(command::step, 0ms);
  CHECK(s.state() == run_state::paused);
  const auto first = s.take();
  CHECK(steps_in(first) == 1);
  CHECK(first.back().kind == event_kind::step_end);
  CHECK(s.take().empty());
  s.obey(command::resume, 0ms);
  CHECK(steps_in(s.take()) == 0);
  shown_time += 1s;
  CHECK(steps_in(s.take()) == 1);
  s.obey(command::step, 0ms);
  CHECK(s.take().empty()); // behind the end
}

TEST_CASE("a run that is rewound is played as fast as it was recorded") {
  auto t = two_steps();
  for (auto& e : t.events)
    e.time = 3'600'000'000'000 + e.time * 1'000'000; // 10 ns become 10 ms
  recorded_source s{{t}, &time_of_test};
  CHECK(ops_in(s.take()) == 6);
  s.obey(command::pause, 0ms);
  s.obey(command::rewind, 0ms);
  CHECK(ops_in(s.take()) == 0);
  shown_time += 10ms;
  CHECK(ops_in(s.take()) == 1);
  shown_time += 5ms;
  CHECK(s.take().empty());
  CHECK(s.now_ns() == 3'600'015'000'000);
  s.obey(command::pause, 0ms);
  shown_time += 1h;
  CHECK(s.take().empty());
  s.obey(command::resume, 0ms);
  shown_time += 36ms;
  CHECK(ops_in(s.take()) == 2); // at 30 and 50 ms
  s.obey(command::slow, 100ms);
  shown_time += 109ms;
  CHECK(ops_in(s.take()) == 0); // 10 ms to the next step, 10 ms, and the delay
  shown_time += 20ms;
  CHECK(ops_in(s.take()) == 1);
  s.obey(command::slow, 0ms);
  shown_time += 1s;
  CHECK(steps_in(s.take()) == 1);
  CHECK(s.state() == run_state::ended);
  CHECK(s.now_ns() == t.events.back().time);
}

TEST_CASE("a slow run shows an op per delay") {
  recorded_source s{{two_steps()}, &time_of_test};
  s.obey(command::rewind, 0ms);
  s.obey(command::slow, 100ms);
  CHECK(ops_in(s.take()) == 0);
  shown_time += 101ms;
  CHECK(ops_in(s.take()) == 1);
  shown_time += 50ms;
  CHECK(ops_in(s.take()) == 0);
  shown_time += 160ms;
  CHECK(ops_in(s.take()) == 2);
  shown_time += 10s;
  CHECK(ops_in(s.take()) == 3);
  CHECK(s.state() == run_state::ended);
}

TEST_CASE("why a handle of a file waits is found in the picture") {
  auto t = two_steps();
  t.events.resize(3); // conv2d runs
  recorded_source s{{t}};
  live_picture picture{t.graph, {0}, 1};
  picture.add(s.take());
  CHECK(s.why(picture, update).links.front().handle == update);
  CHECK_FALSE(s.why(picture, {}).links.empty());
  CHECK(caught([&] { s.why(picture, 77); }).code() == errc::not_found);
}

TEST_CASE("a file gives its actors once, and again when it is rewound") {
  recorded_source s{{two_actors()}};
  const auto all = s.take_actors();
  REQUIRE(all.actors.size() == 3);
  CHECK(all.actors[1].first == 1);
  CHECK(all.actors[1].second.name == "reporter");
  REQUIRE(all.types.size() == 2);
  CHECK(all.types[1].second == "('report', float)");
  CHECK(s.take_actors().empty());
  s.obey(command::rewind, 0ms);
  CHECK(s.take_actors().actors.size() == 3);
}

TEST_CASE("files of several ranks are joined, and say whose they are") {
  const recorded_source s{two_ranks()};
  REQUIRE(s.ranks().size() == 2);
  CHECK(s.ranks()[1].process == 1);
  CHECK(s.head().run.workers == 2);
}

TEST_CASE("a word that is no command is refused") {
  CHECK(parse_command("rewind") == command::rewind);
  CHECK(says(caught([] { parse_command("explode"); }), "explode"));
}

} // TEST_SUITE("dashboard.recorded_source")
