// SPDX-License-Identifier: Apache-2.0
#include <troupe/base/worker_place.hpp>

#include <doctest/doctest.h>

using namespace troupe;

TEST_SUITE("base.worker_place") {

namespace {

struct no_job final : job {
  void run(worker&) override {}
};

/// A worker with a job in its list.
struct busy_place {
  busy_place() { place.jobs.push(waiting, job_priority::normal); }
  void moves_on() { place.took(1, 1); }

  no_job waiting;
  worker_place place;
};

} // namespace

TEST_CASE("jobs count as short once their length is known") {
  worker_place p;
  CHECK_FALSE(p.has_short_jobs());
  p.took(10, 10 * 2 * short_job_ticks);
  CHECK_FALSE(p.has_short_jobs());
  for (int chain = 0; chain < 20; ++chain)
    p.took(64, 64 * short_job_ticks / 10);
  CHECK(p.has_short_jobs());
  p.took(1, 100 * short_job_ticks);
  CHECK_FALSE(p.has_short_jobs());
}

TEST_CASE("the first short jobs count at once") {
  worker_place p;
  p.took(64, 64 * short_job_ticks / 10);
  CHECK(p.has_short_jobs());
}

TEST_CASE("a worker takes its oldest job after a chain's length of jobs") {
  worker_place p;
  no_job a, b, c;
  for (auto* j : {&a, &b, &c})
    p.jobs.push(*j, job_priority::normal);
  CHECK(p.take_own() == &c);
  p.jobs_since_oldest = worker::chain_limit;
  CHECK(p.take_own() == &a);
  CHECK(p.take_own() == &b);
}

TEST_CASE("a worker that looks for a job is given one") {
  job_slot slot;
  no_job a, b;
  CHECK_FALSE(slot.give(a)); // it does not look
  slot.open();
  CHECK(slot.poll() == nullptr);
  CHECK(slot.give(a));
  CHECK_FALSE(slot.give(b)); // its place is taken
  CHECK(slot.poll() == &a);
  CHECK(slot.give(b)); // it still looks
  CHECK(slot.close() == &b);
  CHECK_FALSE(slot.give(a));
  CHECK(slot.close() == nullptr);
}

TEST_CASE("what a worker was given may be stolen, and it given another") {
  worker_place p;
  no_job a, b;
  CHECK(p.take_for_other() == nullptr);
  p.slot.open();
  CHECK(p.take_for_other() == nullptr);
  CHECK(p.slot.give(a));
  CHECK(p.take_for_other() == &a);
  CHECK(p.slot.give(b));
  CHECK(p.slot.poll() == &b);
}

TEST_CASE("a worker that was stuck has no short jobs") {
  worker_place p;
  p.took(64, 64);
  REQUIRE(p.has_short_jobs());
  p.was_stuck(); // it runs none
  CHECK(p.has_short_jobs());
  p.epoch = 1;
  p.was_stuck();
  CHECK_FALSE(p.has_short_jobs());
}

TEST_CASE("a worker is stuck that does not get on") {
  busy_place w;
  place_watch watch;
  CHECK_FALSE(watch.is_stuck(w.place, 1000));
  CHECK_FALSE(watch.is_stuck(w.place, 1000 + patience_ns - 1));
  CHECK(watch.is_stuck(w.place, 1000 + patience_ns));
}

TEST_CASE("a worker that comes to its jobs is not stuck") {
  busy_place w;
  place_watch watch;
  for (std::uint64_t now = 0; now < 10 * patience_ns; now += patience_ns / 2) {
    CHECK_FALSE(watch.is_stuck(w.place, now));
    w.moves_on();
  }
}

TEST_CASE("one that is stuck is found beside one that is not") {
  busy_place quick, stuck;
  place_watch watch;
  bool found = false;
  for (std::uint64_t now = 0; now < 5 * patience_ns; now += patience_ns / 4) {
    CHECK_FALSE(watch.is_stuck(quick.place, now));
    found = found || watch.is_stuck(stuck.place, now);
    quick.moves_on();
  }
  CHECK(found);
}

} // TEST_SUITE("base.worker_place")
