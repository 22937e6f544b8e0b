// SPDX-License-Identifier: Apache-2.0
#include <troupe/base/recorder.hpp>

#include <troupe/base/event_reader.hpp>
#include <troupe/base/job_queue.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <string_view>
#include <thread>
#include <vector>

using namespace troupe;

TEST_SUITE("base.recorder") {

TEST_CASE("nothing is recorded at level off") {
  const job_queue queue{2};
  recorder r{queue};
  event_reader reader{r};
  r.record(event_kind::failure, 1, 2);
  CHECK(reader.take().empty());
  level_request level{r, trace_level::ops};
  CHECK(r.wants(trace_level::steps));
  CHECK_FALSE(r.wants(trace_level::messages));
  r.record(event_kind::failure, 1, 2, 3, 4);
  r.record_if_wanted(event_kind::message, 5, 6);
  level.change(trace_level::off);
  r.record(event_kind::failure, 7, 8);
  const auto events = reader.take();
  REQUIRE(events.size() == 1);
  CHECK(events[0].kind == event_kind::failure);
  CHECK(events[0].from == 1);
  CHECK(events[0].step == 2);
  CHECK(events[0].amount == 3);
  CHECK(events[0].to == 4);
  CHECK(events[0].worker == recorder::no_worker);
}

TEST_CASE("events of workers and of other threads come in one order") {
  job_queue queue{2};
  recorder r{queue};
  const level_request all{r, trace_level::messages};
  event_reader reader{r};
  {
    worker second{queue, 1};
    r.record(event_kind::fetch, 1, 0);
  }
  r.record(event_kind::fetch, 2, 0);
  std::thread([&] { r.record(event_kind::fetch, 3, 0); }).join();
  const auto events = reader.take();
  REQUIRE(events.size() == 3);
  CHECK(events[0].worker == 1);
  CHECK(events[1].worker == recorder::no_worker);
  CHECK(std::ranges::is_sorted(events, {}, &trace_event::time));
  CHECK(reader.lost() == 0);
  CHECK(r.ns_per_tick() > 0);
}

TEST_CASE("the level is the highest that is asked for") {
  const job_queue queue{1};
  recorder r{queue};
  using enum trace_level;
  level_request first{r, steps};
  CHECK(r.level() == steps);
  {
    level_request second{r, messages};
    CHECK(r.level() == messages);
    first.change(ops);
    CHECK(r.level() == messages);
    second.change(steps);
    CHECK(r.level() == ops);
    second.change(messages);
  }
  CHECK(r.level() == ops);
  first.change(off);
  CHECK(r.level() == off);
}

TEST_CASE("kinds of events are ordered by their level") {
  using enum event_kind;
  for (auto kind : {step_begin, step_end, feed, fetch, failure})
    CHECK(level_of(kind) == trace_level::steps);
  for (auto kind : {run_begin, run_end, completion, hand_over, help_begin,
                    help_end, arrival, merge_begin, merge_end, allocation,
                    deallocation, parcel_sent, parcel_arrived})
    CHECK(level_of(kind) == trace_level::ops);
  CHECK(level_of(message) == trace_level::messages);
}

TEST_CASE("every kind of event has a name of its own") {
  std::vector<std::string_view> names;
  for (int k = 0; k < static_cast<int>(event_kinds); ++k)
    names.push_back(to_string(static_cast<event_kind>(k)));
  std::ranges::sort(names);
  CHECK(std::ranges::adjacent_find(names) == names.end());
}

} // TEST_SUITE("base.recorder")
