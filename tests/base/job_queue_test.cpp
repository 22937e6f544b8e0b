// SPDX-License-Identifier: Apache-2.0
#include "chained_jobs.hpp"

#include <troupe/base/cores.hpp>
#include <troupe/base/job_queue.hpp>
#include <troupe/base/worker_place.hpp>

#include <support/serving_threads.hpp>
#include <support/skip_case.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <latch>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

using namespace troupe;
using namespace troupe::test;

TEST_SUITE("base.job_queue") {

namespace {

struct counting_job final : job {
  explicit counting_job(std::atomic<int>& count) : count_(count) {}
  void run(worker& on) override {
    count_.fetch_add(1);
    on.queue().wake_borrowers();
  }
  std::atomic<int>& count_;
};

void wait_for(const std::atomic<int>& count, int expected) {
  while (count.load() < expected)
    std::this_thread::yield();
}

/// The seats of workers that sleep, and no others, can be borrowed.
void wait_until_all_sleep(job_queue& q) {
  std::size_t lent = 0;
  for (; lent < q.workers(); std::this_thread::yield())
    lent += q.borrow() != job_queue::no_seat ? 1 : 0;
  while (lent > 0)
    q.give_back(--lent);
}

} // namespace

TEST_CASE("a worker takes its newest job first and high priority before") {
  job_queue q{1};
  std::string log;
  recording_job a{log, 'a'}, b{log, 'b'}, c{log, 'c'};
  worker here{q, 0};
  q.push(a);
  q.push(b, job_priority::high);
  q.push(c);
  while (auto* j = q.pop(0))
    here.run_chain(*j);
  CHECK(log == "bca");
}

TEST_CASE("a worker takes the oldest job of another") {
  job_queue q{2};
  std::string log;
  recording_job a{log, 'a'}, b{log, 'b'};
  q.push_to(1, a);
  q.push_to(1, b);
  worker here{q, 0};
  here.run_chain(*q.pop(0));
  CHECK(log == "a");
}

TEST_CASE("how short a worker's jobs are is known while they run") {
  job_queue q{2};
  /// Counts as many jobs of a length, which are timed several times: what a
  /// chain costs by itself, where atomics are slow more than a short job, is
  /// outweighed then.
  struct lot final : job {
    explicit lot(std::uint64_t ticks_each) : each(ticks_each) {}
    void run(worker& on) override {
      constexpr std::uint32_t count = 64;
      for (int times = 0; times < 16; ++times) {
        for (const auto end = ticks() + each * count; ticks() < end;) {
        }
        on.did(count);
      }
    }
    std::uint64_t each;
  } short_ones{1}, long_ones{64 * short_job_ticks};
  worker here{q, 0};
  CHECK_FALSE(here.has_short_jobs()); // nothing is known yet
  // A thread that is interrupted takes its jobs for long ones.
  bool known = false;
  for (int tries = 0; tries < 100000 && !known; ++tries) {
    here.run_chain(short_ones);
    known = here.has_short_jobs();
  }
  CHECK(known);
  here.run_chain(long_ones);
  CHECK_FALSE(here.has_short_jobs());
}

TEST_CASE("a job for a worker goes to its place, however short the jobs here") {
  job_queue q{2};
  struct quick final : job {
    void run(worker&) override {}
  } one;
  worker here{q, 0};
  for (int i = 0; i < 1000; ++i)
    here.run_chain(one);
  q.push_to(1, one);
  CHECK_FALSE(q.others_wait(0));
  CHECK(q.pop(1) == &one);
}

TEST_CASE("a job that yields runs behind the others of its worker") {
  job_queue q{1};
  std::string log;
  recording_job a{log, 'a'}, b{log, 'b'};
  worker here{q, 0};
  q.push(b);
  q.yield(a);
  CHECK(q.others_wait(0));
  while (auto* j = q.pop(0))
    here.run_chain(*j);
  CHECK(log == "ba");
  CHECK_FALSE(q.others_wait(0));
}

TEST_CASE("the current worker is known on its thread and only there") {
  job_queue outer{1}, inner{1};
  CHECK(worker::current() == nullptr);
  {
    worker a{outer, 0};
    CHECK(worker::current() == &a);
    {
      worker b{inner, 0};
      CHECK(worker::current() == &b);
    }
    CHECK(worker::current() == &a);
    std::thread([] { CHECK(worker::current() == nullptr); }).join();
  }
  CHECK(worker::current() == nullptr);
}

TEST_CASE("no push is lost while workers fall asleep and wake") {
  for (std::size_t workers : {1u, 2u, 4u}) {
    CAPTURE(workers);
    job_queue q{workers};
    serving_threads threads{q};
    std::atomic<int> count{0};
    counting_job a{count}, b{count};
    for (int round = 1; round <= 3000; ++round) {
      q.push(a);
      q.push_to(static_cast<std::size_t>(round), b);
      wait_for(count, 2 * round);
    }
    CHECK(count == 6000);
  }
}

// On its own core the worker would wait until this thread sleeps.
TEST_CASE("a foreign push wakes the worker of another core") {
  if (usable_cores() < 2)
    return skip_case("needs two cores");
  class placed_job final : public job {
  public:
    void run(worker& on) override { ran_on = static_cast<int>(on.index()); }
    std::atomic<int> ran_on{-1};
  };
  constexpr int rounds = 60;
  job_queue q{2};
  serving_threads threads{q};
  for (int core : {0, 1}) {
    const stay_on_core here{static_cast<std::size_t>(core)};
    int elsewhere = 0;
    for (int round = 0; round < rounds; ++round) {
      wait_until_all_sleep(q);
      threads.wait_until_asleep();
      placed_job j;
      q.push(j);
      while (j.ran_on.load() < 0)
        std::this_thread::yield();
      elsewhere += j.ran_on.load() != core ? 1 : 0;
    }
    CHECK(elsewhere == rounds);
  }
}

TEST_CASE("several foreign threads push and every job runs once") {
  job_queue q{2};
  std::atomic<int> count{0};
  constexpr int threads = 3, jobs_each = 2000;
  std::vector<std::unique_ptr<counting_job>> jobs;
  for (int i = 0; i < threads * jobs_each; ++i)
    jobs.push_back(std::make_unique<counting_job>(count));
  {
    serving_threads serving{q};
    std::vector<std::thread> pushers;
    CHECK(q.foreign_pushes() == 0);
    for (int t = 0; t < threads; ++t)
      pushers.emplace_back([&, t] {
        for (int i = 0; i < jobs_each; ++i)
          q.push(*jobs[static_cast<std::size_t>(t * jobs_each + i)]);
      });
    for (auto& p : pushers)
      p.join();
  } // stops, which lets waiting jobs run first
  CHECK(count == threads * jobs_each);
  CHECK(q.foreign_pushes() == threads * jobs_each);
}

TEST_CASE(
  "what a worker pushes does not go through the foreign threads' list") {
  job_queue q{2};
  std::atomic<int> count{0};
  counting_job own{count}, given{count};
  {
    worker w{q, 0};
    q.push(own);
  }
  q.push_to(1, given);
  CHECK(q.foreign_pushes() == 0);
  CHECK(q.pop(0) == &own);
  CHECK(q.pop(1) == &given);
}

TEST_CASE("a stopped queue lets its workers go and can be restarted") {
  job_queue q{2};
  std::atomic<int> count{0};
  counting_job j{count};
  for (int round = 1; round <= 50; ++round) {
    {
      serving_threads threads{q};
      q.push(j);
      wait_for(count, round);
    }
    q.restart();
  }
  CHECK(count == 50);
}

TEST_CASE("a thread that waits serves in the place of a worker that sleeps") {
  job_queue q{1}; // its worker never comes
  std::atomic<int> count{0};
  counting_job a{count}, b{count};
  const auto seat = q.borrow();
  REQUIRE(seat == 0);
  CHECK(q.borrow() == job_queue::no_seat);
  {
    worker here{q, seat};
    q.push(a);
    q.push(b);
    const auto done = [](void* c) {
      return static_cast<std::atomic<int>*>(c)->load() == 2;
    };
    while (auto* j = q.wait_until(seat, {done, &count}))
      here.run_chain(*j);
  }
  q.give_back(seat);
  CHECK(count == 2);
  CHECK(q.borrow(0) == 0);
  q.give_back(0);
}

TEST_CASE(
  "no job is lost between borrowers and the workers they stand in for") {
  for (std::size_t workers : {1u, 2u}) {
    CAPTURE(workers);
    job_queue q{workers};
    serving_threads threads{q};
    std::atomic<int> count{0};
    counting_job a{count}, b{count};
    for (int round = 1; round <= 3000; ++round) {
      struct wait_context {
        std::atomic<int>& count;
        int expected;
      } until{count, 2 * round};
      const auto seat = round % 3 == 0 ? job_queue::no_seat : q.borrow();
      if (seat == job_queue::no_seat) {
        q.push(a);
        q.push_to(static_cast<std::size_t>(round), b);
        wait_for(count, until.expected);
        continue;
      }
      worker here{q, seat};
      q.push_to(static_cast<std::size_t>(round), a);
      q.push(b);
      if (round % 5 != 0) // else others have to do it all
        while (auto* j =
                 q.wait_until(seat, {[](void* c) {
                                       auto& w = *static_cast<wait_context*>(c);
                                       return w.count.load() >= w.expected;
                                     },
                                     &until}))
          here.run_chain(*j);
      q.give_back(seat);
      wait_for(count, until.expected);
    }
    CHECK(count == 6000);
  }
}

TEST_CASE("a borrower that sleeps is woken by what it waits for") {
  job_queue q{2};
  serving_threads threads{q};
  std::atomic<int> count{0};
  struct slow final : job {
    explicit slow(std::atomic<int>& c, job_queue& of) : count(c), queue(of) {}
    void run(worker&) override {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      count.fetch_add(1);
      queue.wake_borrowers();
    }
    std::atomic<int>& count;
    job_queue& queue;
  } j{count, q};
  for (int round = 1; round <= 5; ++round) {
    q.push(j); // taken by a worker
    while (q.others_wait(0))
      std::this_thread::yield();
    const auto seat = q.borrow();
    if (seat == job_queue::no_seat) {
      wait_for(count, round);
      continue;
    }
    std::pair until{&count, round};
    while (auto* other = q.wait_until(
             seat, {[](void* c) {
                      auto& [value, expected] =
                        *static_cast<std::pair<std::atomic<int>*, int>*>(c);
                      return value->load() >= expected;
                    },
                    &until})) {
      worker here{q, seat};
      here.run_chain(*other);
    }
    q.give_back(seat);
    CHECK(count == round);
  }
}

TEST_CASE("a guest does not wait for a job that keeps all workers") {
  job_queue q{1};
  std::latch is_busy{1}, guest_has_run{1};
  struct long_job final : job {
    std::latch& busy;
    std::latch& end;
    long_job(std::latch& b, std::latch& e) : busy(b), end(e) {}
    void run(worker&) override {
      busy.count_down();
      end.wait();
    }
  } keeps_it{is_busy, guest_has_run};
  std::thread owner([&] {
    worker here{q, 0};
    while (auto found = q.wait(0))
      if (found.work)
        here.run_chain(*found.work);
  });
  std::thread stand_in([&] {
    while (q.wait_for_guest())
      guest_has_run.count_down();
  });
  q.push(keeps_it);
  is_busy.wait();
  int guest = 0;
  q.push_guest(&guest);
  guest_has_run.wait();
  q.stop();
  owner.join();
  stand_in.join();
}

TEST_CASE("a guest's guests run next, and jobs after a few of them") {
  job_queue q{1};
  worker here{q, 0};
  int first = 0, second = 0, others = 0;
  struct quick_job final : job {
    void run(worker&) override {}
  } work;
  for (int round = 0; round < 8; ++round) {
    q.push_guest(&first);
    CHECK(q.wait(0).guest == &first);
    q.push(work);
    q.push_guest(&second);
    CHECK(q.wait(0).guest == &second);
    for (int i = 0; i < 20; ++i)
      q.push_guest(&others);
    int before_work = 0;
    while (q.wait(0).work != &work)
      ++before_work;
    CHECK(before_work <= 16);
    while (q.pop_guest()) {
    }
  }
}

TEST_CASE("guests are run by the workers' own threads") {
  job_queue q{1};
  std::atomic<int> guests{0};
  std::thread owner([&] {
    worker here{q, 0};
    while (auto found = q.wait(0))
      if (found.guest)
        guests.fetch_add(1);
      else
        here.run_chain(*found.work);
  });
  int guest = 0;
  for (int round = 1; round <= 1000; ++round) {
    const auto seat = round % 2 == 0 ? q.borrow() : job_queue::no_seat;
    q.push_guest(&guest); // though the seat may be lent
    wait_for(guests, round);
    if (seat != job_queue::no_seat)
      q.give_back(seat);
  }
  q.stop();
  owner.join();
  CHECK(guests == 1000);
}

TEST_CASE("a guest that waits for another one does not keep it waiting") {
  job_queue q{2};
  std::atomic<int> jobs{0}, guests{0};
  std::atomic<bool> in_time{true};
  int expected = 0;
  const auto serve = [&](std::size_t index) {
    worker here{q, index};
    while (auto found = q.wait(index)) {
      if (found.work) {
        here.run_chain(*found.work);
        continue;
      }
      const auto together = *static_cast<int*>(found.guest);
      guests.fetch_add(1);
      for (int looks = 0; in_time && guests < together; ++looks) {
        std::this_thread::sleep_for(std::chrono::microseconds(100));
        if (looks > 50'000)
          in_time = false;
      }
    }
  };
  std::thread first{serve, 0}, second{serve, 1};
  for (int round = 1; round <= 100 && in_time; ++round) {
    // Long enough for both to sleep; then the job leaves one that searches.
    std::this_thread::sleep_for(std::chrono::microseconds(300));
    counting_job j{jobs};
    q.push(j);
    wait_for(jobs, round);
    expected = 2 * round;
    q.push_guest(&expected);
    q.push_guest(&expected);
    wait_for(guests, expected);
  }
  q.stop();
  first.join();
  second.join();
  CHECK(in_time);
}

TEST_CASE("workers that search also look outside, until it is detached") {
  class source final : public outside_work {
  public:
    source(job_queue& q, std::atomic<int>& count) : queue_(q), job_(count) {}
    void begin_looking() noexcept override { ++lookers; }
    void look() noexcept override {
      ++looks;
      if (has_job.exchange(false))
        queue_.push(job_);
    }
    void end_looking() noexcept override { --lookers; }

    std::atomic<int> lookers{0}, looks{0};
    std::atomic<bool> has_job{false};

  private:
    job_queue& queue_;
    counting_job job_;
  };
  job_queue q{2};
  std::atomic<int> ran{0}, count{0};
  source outside{q, ran}, other{q, ran};
  serving_threads threads{q};
  CHECK(q.attach(outside));
  CHECK(!q.attach(other));
  counting_job wakes{count};
  for (int round = 1; round <= 200; ++round) {
    outside.has_job = true;
    while (ran.load() < round) { // until a worker searches
      const int before = count.load();
      q.push(wakes);
      wait_for(count, before + 1);
    }
  }
  q.detach(outside);
  CHECK(outside.lookers == 0);
  const int looks = outside.looks;
  CHECK(looks >= 200);
  for (int round = 0; round < 50; ++round) {
    const int before = count.load();
    q.push(wakes);
    wait_for(count, before + 1);
  }
  CHECK(outside.looks == looks);
  for (int round = 0; round < 500; ++round) { // while workers search
    CHECK(q.attach(other));
    const int before = count.load();
    q.push(wakes);
    wait_for(count, before + 1);
    q.detach(other);
    CHECK(other.lookers == 0);
  }
}

TEST_CASE("quiesce waits for a job that runs") {
  job_queue q{1};
  struct slow final : job {
    void run(worker&) override {
      started = true;
      while (!release)
        std::this_thread::yield();
      ended = true;
    }
    std::atomic<bool> started{false}, release{false}, ended{false};
  } j;
  serving_threads threads{q};
  q.push(j);
  while (!j.started)
    std::this_thread::yield();
  std::thread releaser([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    j.release = true;
  });
  q.quiesce();
  CHECK(j.ended);
  releaser.join();
}

} // TEST_SUITE("base.job_queue")
