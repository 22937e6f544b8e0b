// SPDX-License-Identifier: Apache-2.0
#include <troupe/base/recorder.hpp>

#include <troupe/base/job_queue.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

using namespace troupe;

TEST_SUITE("base.recorder") {

namespace {

/// Event number `n`: all words say so.
trace_event numbered(std::uint64_t n) {
  return {.time = n,
          .amount = n,
          .from = static_cast<handle_id>(n),
          .to = static_cast<handle_id>(n),
          .step = static_cast<std::uint32_t>(n)};
}

bool is_whole(const trace_event& e) {
  return e.amount == e.time && e.from == static_cast<handle_id>(e.time)
         && e.to == e.from && e.step == static_cast<std::uint32_t>(e.time);
}

} // namespace

TEST_CASE("a ring gives events once, oldest first") {
  event_ring ring{8};
  std::vector<trace_event> taken;
  for (std::uint64_t n = 0; n < 3; ++n)
    ring.write(numbered(n));
  CHECK(ring.take(taken) == 0);
  CHECK(ring.take(taken) == 0);
  for (std::uint64_t n = 3; n < 5; ++n)
    ring.write(numbered(n));
  CHECK(ring.take(taken) == 0);
  REQUIRE(taken.size() == 5);
  for (std::uint64_t n = 0; n < 5; ++n)
    CHECK(taken[n].time == n);
}

TEST_CASE("a full ring loses its oldest events and says how many") {
  event_ring ring{8};
  std::vector<trace_event> taken;
  for (std::uint64_t n = 0; n < 20; ++n)
    ring.write(numbered(n));
  const auto lost = ring.take(taken);
  CHECK(lost + taken.size() == 20);
  REQUIRE(taken.size() >= 7); // the place that is written next is not read
  CHECK(taken.back().time == 19);
  CHECK(taken.front().time == lost);
}

TEST_CASE("a reader beside the writer gets whole events or counts them lost") {
  constexpr std::uint64_t events = 200'000;
  event_ring ring{64};
  std::atomic<bool> over{false};
  std::thread writer([&] {
    for (std::uint64_t n = 0; n < events; ++n)
      ring.write(numbered(n));
    over = true;
  });
  std::uint64_t lost = 0;
  std::uint64_t got = 0;
  std::uint64_t next = 0;
  bool whole = true;
  bool in_order = true;
  std::vector<trace_event> taken;
  for (bool last = false; !last;) {
    last = over;
    taken.clear();
    lost += ring.take(taken);
    got += taken.size();
    for (auto& e : taken) {
      whole &= is_whole(e);
      in_order &= e.time >= next;
      next = e.time + 1;
    }
  }
  writer.join();
  CHECK(whole);
  CHECK(in_order);
  CHECK(got + lost == events);
}

TEST_CASE("nothing is recorded at level off") {
  const job_queue queue{2};
  recorder r{queue};
  r.record(event_kind::failure, 1, 2);
  CHECK(r.take().empty());
  r.set_level(trace_level::ops);
  CHECK(r.wants(trace_level::steps));
  CHECK_FALSE(r.wants(trace_level::messages));
  r.record(event_kind::failure, 1, 2, 3, 4);
  r.record_if(trace_level::messages, event_kind::message, 5, 6);
  r.set_level(trace_level::off);
  r.record(event_kind::failure, 7, 8);
  const auto events = r.take();
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
  r.set_level(trace_level::messages);
  {
    worker second{queue, 1};
    r.record(event_kind::fetch, 1, 0);
  }
  r.record(event_kind::fetch, 2, 0);
  std::thread([&] { r.record(event_kind::fetch, 3, 0); }).join();
  const auto events = r.take();
  REQUIRE(events.size() == 3);
  CHECK(events[0].worker == 1);
  CHECK(events[1].worker == recorder::no_worker);
  CHECK(std::ranges::is_sorted(events, {}, &trace_event::time));
  CHECK(r.lost() == 0);
  CHECK(r.ns_per_tick() > 0);
}

TEST_CASE("every kind of event has a name of its own") {
  std::vector<std::string_view> names;
  for (int k = 0; k <= static_cast<int>(event_kind::message); ++k)
    names.push_back(to_string(static_cast<event_kind>(k)));
  std::ranges::sort(names);
  CHECK(std::ranges::adjacent_find(names) == names.end());
}

} // TEST_SUITE("base.recorder")
