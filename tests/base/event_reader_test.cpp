// SPDX-License-Identifier: Apache-2.0
#include <troupe/base/event_reader.hpp>

#include <troupe/base/job_queue.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <thread>
#include <vector>

using namespace troupe;

TEST_SUITE("base.event_reader") {

namespace {

using start = event_reader::start;

void record_feeds(recorder& r, std::uint64_t count) {
  for (std::uint64_t n = 0; n < count; ++n)
    r.record_if_wanted(event_kind::feed, 0, 0, n);
}

} // namespace

TEST_CASE("readers do not take events from each other") {
  const job_queue queue{1};
  recorder r{queue};
  const level_request steps{r, trace_level::steps};
  event_reader first{r}, second{r};
  record_feeds(r, 3);
  CHECK(first.take().size() == 3);
  record_feeds(r, 2);
  CHECK(first.take().size() == 2);
  CHECK(second.take().size() == 5);
  CHECK(second.take().empty());
  CHECK(first.lost() == 0);
}

TEST_CASE("a reader begins with the next event or with the oldest") {
  const job_queue queue{1};
  recorder r{queue, 8};
  const level_request steps{r, trace_level::steps};
  record_feeds(r, 20);
  event_reader next{r}, oldest{r, start::oldest};
  record_feeds(r, 1);
  CHECK(next.take().size() == 1);
  CHECK(next.lost() == 0);
  const auto events = oldest.take();
  CHECK(events.size() >= 7);
  CHECK(events.size() + oldest.lost() == 21);
}

TEST_CASE("the oldest events begin where no ring has lost one") {
  job_queue queue{1};
  recorder r{queue, 8};
  const level_request steps{r, trace_level::steps};
  const auto record_at = [&](std::uint16_t worker, std::uint64_t time) {
    r.record(event_kind::feed, worker, 0, no_handle, 0, 0, time);
  };
  for (std::uint64_t time = 0; time < 100; time += 20) // 5 events
    record_at(recorder::no_worker, time);
  for (std::uint64_t time = 1; time < 100; ++time)
    record_at(0, time);
  event_reader oldest{r, start::oldest};
  const auto events = oldest.take();
  REQUIRE_FALSE(events.empty());
  CHECK(events.front().time > 90);
  CHECK(std::ranges::count(events, 0, &trace_event::worker)
        == static_cast<long>(events.size()));
  CHECK(events.size() + oldest.lost() == 5 + 99);
  record_at(recorder::no_worker, 50); // recorded late
  CHECK(oldest.take().size() == 1);
}

TEST_CASE("events of several rings come in the order of their times") {
  job_queue queue{2};
  recorder r{queue};
  const level_request steps{r, trace_level::steps};
  event_reader reader{r};
  const auto record_at = [&](std::uint16_t worker, std::uint64_t time) {
    r.record(event_kind::feed, worker, 0, no_handle, 0, 0, time);
  };
  for (const std::uint64_t time : {1, 4, 9, 7}) // a late one, too
    record_at(1, time);
  for (const std::uint64_t time : {2, 4, 8})
    record_at(0, time);
  for (const std::uint64_t time : {3, 6})
    record_at(recorder::no_worker, time);
  const auto events = reader.take();
  CHECK(events.size() == 9);
  CHECK(std::ranges::is_sorted(events, {}, &trace_event::time));
}

TEST_CASE("a reader reads rings that are made after it") {
  const job_queue queue{1};
  recorder r{queue};
  event_reader now{r}, oldest{r, start::oldest};
  CHECK(now.take().empty());
  const level_request steps{r, trace_level::steps};
  record_feeds(r, 2);
  CHECK(now.take().size() == 2);
  CHECK(oldest.take().size() == 2);
}

TEST_CASE("a reader leaves out events above its level") {
  job_queue queue{1};
  recorder r{queue};
  const level_request all{r, trace_level::messages};
  event_reader steps{r, start::now, trace_level::steps};
  event_reader ops{r, start::now, trace_level::ops};
  event_reader messages{r};
  for (auto kind :
       {event_kind::feed, event_kind::run_begin, event_kind::message})
    r.record(kind, 1, 0);
  const auto kinds = [](event_reader& from) {
    std::vector<event_kind> found;
    for (auto& e : from.take())
      found.push_back(e.kind);
    std::ranges::sort(found);
    return found;
  };
  using enum event_kind;
  CHECK(kinds(steps) == std::vector{feed});
  CHECK(kinds(ops) == std::vector{feed, run_begin});
  CHECK(kinds(messages) == std::vector{feed, run_begin, message});
}

TEST_CASE("two readers beside threads that record see every event once") {
  constexpr std::uint64_t events = 100'000;
  job_queue queue{1};
  recorder r{queue, 1024};
  const level_request steps{r, trace_level::steps};
  std::atomic<int> writing{2};
  struct outcome {
    std::uint64_t got = 0, lost = 0;
    bool rises = true; // the amounts that a thread records
  };
  const auto read_all = [&](outcome& out) {
    event_reader reader{r, start::oldest};
    std::uint64_t next_of_worker = 0, next_of_other = 0;
    for (bool last = false; !last;) {
      last = writing == 0;
      for (auto& e : reader.take()) {
        ++out.got;
        auto& next =
          e.worker == recorder::no_worker ? next_of_other : next_of_worker;
        out.rises &= e.amount >= next;
        next = e.amount + 1;
      }
    }
    out.lost = reader.lost();
  };
  std::thread as_worker([&] {
    worker self{queue, 0};
    record_feeds(r, events);
    --writing;
  });
  std::thread as_other([&] {
    record_feeds(r, events);
    --writing;
  });
  outcome here, there;
  std::thread reads([&] { read_all(there); });
  read_all(here);
  for (auto* t : {&as_worker, &as_other, &reads})
    t->join();
  for (const auto& out : {here, there}) {
    CHECK(out.got + out.lost == 2 * events);
    CHECK(out.rises);
  }
}

} // TEST_SUITE("base.event_reader")
