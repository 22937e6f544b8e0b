// SPDX-License-Identifier: Apache-2.0
//
// How workers of a job_queue sleep and wake, in all interleavings.
#include "model/queue_program.hpp"

#include <doctest/doctest.h>

#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

using namespace troupe::model;
using namespace troupe::model::queue;

TEST_SUITE("model.parking") {

namespace {

using troupe::model::memory_access;

/// What the threads of a test are and do.
struct setting {
  std::size_t seats = 1;
  std::size_t asleep = 0; ///< the first owners begin asleep
  bool borrowed = false;  ///< seat 0 may be lent
  bool with_guests = false;
  bool with_jobs = true;
  bool with_stop = false;
  int pushes_more = -1;             ///< this job pushes job 2
  int ends = -1;                    ///< this job is what the borrower waits for
  int waits_for = -1;               ///< job 0 ends when this job has run
  bool guests_meet = false;         ///< guest 0 waits for guest 1
  bool job_waits_for_guest = false; ///< job 0 ends when guest 0 has run
  bool with_stand_in = false;
  bool looks_near = false; ///< owners look for guests before they search
  mistakes wrong = {};
};

/// What a job does; local `job` says which.
void run_job(queue_program& w, const setting& t, std::size_t s) {
  w.step("run", kind::release, runs, [](memory_access& a) {
    ++a.shared(of(runs, static_cast<std::size_t>(a.local(job))));
  });
  const auto only = [&](int which, auto act) {
    if (which < 0)
      return;
    const auto behind = w.new_label();
    w.branch(
      "which job?", [which](memory_access& a) { return a.local(job) != which; },
      behind, kind::local);
    act();
    w.mark(behind);
  };
  only(t.pushes_more, [&] { w.push(s, 2); });
  if (t.waits_for >= 0)
    w.step(
      "wait for another job", kind::plain, 0, [](memory_access&) {},
      [v = of(runs, static_cast<std::size_t>(t.waits_for))](memory_access& a) {
        return a.local(job) != 0 || a.load(v) != 0;
      });
  if (t.job_waits_for_guest)
    w.step(
      "wait for a guest", kind::plain, 0, [](memory_access&) {},
      [](memory_access& a) { return a.load(guest_runs) != 0; });
  only(t.ends, [&] { w.tell_end(); });
}

void run_guest(queue_program& w, const setting& t) {
  if (t.guests_meet)
    w.step(
      "meet the other guest", kind::plain, 0, [](memory_access&) {},
      [](memory_access& a) { return a.local(job) != 0 || a.load(guest_runs); });
  w.step("run the guest", kind::release, guest_runs, [](memory_access& a) {
    a.shared(guest_runs) =
      static_cast<value>(a.shared(guest_runs) | 1 << a.local(job));
  });
}

/// Looks everywhere; a job leads to `found`, a guest to `guest`.
void look_everywhere(queue_program& w, const setting& t, std::size_t s,
                     bool owner, queue_program::label found,
                     queue_program::label guest) {
  if (t.with_jobs) {
    const auto not_given = w.new_label();
    w.poll_slot(s, not_given);
    w.go_to(found);
    w.mark(not_given);
  }
  for (std::size_t i = 0; t.with_jobs && i < t.seats; ++i) {
    const auto next = w.new_label();
    const auto l = (s + i) % t.seats;
    w.take(of(lists, l), of(flags, l), next);
    w.go_to(found);
    w.mark(next);
    if (l == s)
      continue;
    const auto not_stolen = w.new_label();
    w.steal_from_slot(l, not_stolen);
    w.go_to(found);
    w.mark(not_stolen);
  }
  if (owner && t.with_guests) {
    const auto next = w.new_label();
    w.take(guests, guest_flag, next);
    w.go_to(guest);
    w.mark(next);
  }
}

/// The worker's own thread: `wait` and the run of what it returns; and the step
/// at which it sleeps.
std::pair<program, std::uint8_t> owner(const setting& t, std::size_t s) {
  queue_program w{t.seats, t.wrong, t.with_stand_in};
  const auto top = w.new_label(), found = w.new_label(), guest = w.new_label(),
             beside = w.new_label(), leave = w.new_label();
  w.mark(top);
  if (t.borrowed && s == 0)
    w.branch(
      "is the seat lent?",
      [](memory_access& a) { return (a.load(seat) & lent) != 0; }, beside);
  if (t.looks_near) {
    const auto none = w.new_label();
    w.take(guests, guest_flag, none);
    w.go_to(guest);
    w.mark(none);
  }
  w.begin_search(s);
  look_everywhere(w, t, s, true, found, guest);
  if (t.with_stop) {
    const auto stays = w.new_label();
    w.branch(
      "stopped?", [](memory_access& a) { return a.load(stopped) == 0; }, stays);
    for (std::size_t l = 0; l < t.seats; ++l)
      w.branch(
        "no jobs?", [l](memory_access& a) { return a.load(of(lists, l)) != 0; },
        stays);
    w.end_search(s);
    // It may have been given a job meanwhile.
    for (std::size_t l = 0; l < t.seats; ++l)
      w.branch(
        "no jobs?", [l](memory_access& a) { return a.load(of(lists, l)) != 0; },
        top);
    w.go_to(leave);
    w.mark(stays);
  }
  w.sleep(s, up, w.reasons_to_stay({guests, stopped}), top);
  w.mark(found);
  w.end_search(s);
  run_job(w, t, s);
  w.go_to(top);
  w.mark(guest);
  w.end_search(s);
  run_guest(w, t);
  w.go_to(top);
  if (t.borrowed && s == 0) {
    const auto none = w.new_label();
    w.mark(beside);
    if (t.with_guests) {
      w.take(guests, guest_flag, none);
      if (!t.wrong.keeps_guests)
        w.pass_guests_on();
      run_guest(w, t);
      w.go_to(top);
      w.mark(none);
    }
    w.branch(
      "stopped?", [](memory_access& a) { return a.load(stopped) != 0; }, leave);
    w.sleep_beside_borrower(s, top);
  }
  w.mark(leave);
  w.step("leave", kind::release, of(seat, s), [s](memory_access& a) {
    auto& word_ = a.shared(of(seat, s));
    word_ = static_cast<value>(word_ & ~(present | up));
  });
  const auto asleep = w.asleep();
  return {w.finish(), asleep};
}

/// The stand-in: `wait_for_guest`, and the run of what it returns.
program stand_in_of(const setting& t) {
  queue_program w{t.seats, t.wrong, t.with_stand_in};
  const auto top = w.new_label(), none = w.new_label();
  w.mark(top);
  w.take(guests, guest_flag, none);
  w.pass_guests_on();
  run_guest(w, t);
  w.go_to(top);
  w.mark(none);
  w.sleep_as_stand_in(top);
  return w.finish();
}

/// A thread that waits for a job's end in seat 0, if it can have it.
program borrower(const setting& t) {
  queue_program w{t.seats, t.wrong, t.with_stand_in};
  const auto top = w.new_label(), found = w.new_label(), leave = w.new_label(),
             taken = w.new_label(), end = w.new_label();
  w.borrow(0, taken);
  w.mark(top);
  w.branch(
    "is it done?", [](memory_access& a) { return a.load(done) != 0; }, leave);
  w.begin_search(0);
  look_everywhere(w, t, 0, false, found, found);
  w.branch(
    "is it done?", [](memory_access& a) { return a.load(done) != 0; }, leave);
  w.sleep(0, borrower_up, w.reasons_to_stay({done}), top);
  w.mark(found);
  w.end_search(0);
  run_job(w, t, 0);
  w.go_to(top);
  w.mark(leave);
  w.end_search(0);
  w.give_back(0);
  w.go_to(end);
  w.mark(taken);
  w.step(
    "wait without a seat", kind::plain, 0, [](memory_access&) {},
    [](memory_access& a) { return a.load(done) != 0; });
  w.mark(end);
  w.step("end", kind::local, 0, [](memory_access&) {});
  return w.finish();
}

/// A thread outside: job j goes to the list of worker j modulo seats.
program pusher(const setting& t, std::initializer_list<int> jobs,
               std::initializer_list<int> pushed_guests = {}) {
  queue_program w{t.seats, t.wrong, t.with_stand_in};
  for (auto j : jobs)
    w.push_to(static_cast<std::size_t>(j) % t.seats, j);
  for (auto g : pushed_guests)
    w.push_guest(g);
  if (t.with_stop)
    w.stop();
  return w.finish();
}

std::string no_double_run(const state& s) {
  for (std::size_t j = 0; j < job_count; ++j)
    if (s.shared[runs + j] > 1)
      return "a job ran twice";
  return "";
}

/// Nobody can go on: all has run, and the counts are those of the seats.
std::string all_done(const state& s, const setting& t, int jobs,
                     value guests_pushed) {
  for (std::size_t j = 0; j < job_count; ++j)
    if (s.shared[runs + j] != (jobs >> j & 1))
      return "a job waits";
  if (s.shared[guest_runs] != guests_pushed)
    return "a guest waits";
  value asleep = 0, looking = 0;
  for (std::size_t i = 0; i < t.seats; ++i) {
    asleep = static_cast<value>(asleep + server_sleeps(s.shared[seat + i]));
    looking =
      static_cast<value>(looking + ((s.shared[seat + i] & searching) != 0));
  }
  if (s.shared[sleepers] != asleep || s.shared[searchers] != looking)
    return "searchers or sleepers are miscounted";
  return "";
}

/// @param others threads beside the owners
/// @param jobs that must run, a bit each
outcome run(const setting& t, memory rules, std::vector<program> others,
            int jobs, value guests_pushed = 0, bool all_end = false) {
  machine m;
  m.rules = rules;
  for (std::size_t s = 0; s < t.seats; ++s) {
    auto [code, asleep] = owner(t, s);
    m.threads.push_back(std::move(code));
    m.initial.shared[seat + s] = present;
    if (s < t.asleep) {
      m.initial.threads[s].step = asleep;
      ++m.initial.shared[sleepers];
    } else {
      m.initial.shared[seat + s] |= up;
    }
  }
  const auto owners = t.seats;
  for (auto& o : others)
    m.threads.push_back(std::move(o));
  const auto count = m.threads.size(); // without the stand-in, which stays
  if (t.with_stand_in)
    m.threads.push_back(stand_in_of(t));
  m.always = no_double_run;
  m.at_end = [=](const state& s) -> std::string {
    const auto wrong = all_done(s, t, jobs, guests_pushed);
    if (!wrong.empty())
      return wrong;
    for (auto i = all_end ? 0 : owners; i < count; ++i)
      if (s.threads[i].step != ended)
        return i < owners ? "a worker stays" : "a thread waits for ever";
    return "";
  };
  return explore(m);
}

constexpr memory all_rules[] = {memory::sequential, memory::buffered,
                                memory::weak};

/// Two workers and a thread outside that pushes two jobs. Job 0 waits for job
/// 1, so that no job may be left to a worker that is busy.
outcome two_workers(const mistakes& wrong, memory rules, std::size_t asleep) {
  const setting t{.seats = 2, .asleep = asleep, .waits_for = 1, .wrong = wrong};
  return run(t, rules, {pusher(t, {0, 1})}, 0b011);
}

/// Job 0 pushes job 2 to whoever searches and waits for it.
outcome given(const mistakes& wrong, memory rules) {
  const setting t{.seats = 2, .pushes_more = 0, .waits_for = 2, .wrong = wrong};
  return run(t, rules, {pusher(t, {0})}, 0b101);
}

/// The same; who searches may be a borrower, which leaves at any time.
outcome given_to_borrower(const mistakes& wrong, memory rules) {
  const setting t{.seats = 2,
                  .asleep = 2,
                  .borrowed = true,
                  .pushes_more = 0,
                  .waits_for = 2,
                  .wrong = wrong};
  queue_program w{t.seats, t.wrong, t.with_stand_in};
  w.push_to(1, 0);
  w.tell_end();
  return run(t, rules, {w.finish(), borrower(t)}, 0b101);
}

/// Job 0 pushes job 2 to whoever searches and may be first to come for it.
outcome given_and_stolen(const mistakes& wrong, memory rules) {
  const setting t{.seats = 2, .pushes_more = 0, .wrong = wrong};
  return run(t, rules, {pusher(t, {0})}, 0b101);
}

/// Job 0 makes true what a borrower waits for; job 1 comes behind it.
outcome borrowed(const mistakes& wrong, memory rules) {
  const setting t{.borrowed = true, .ends = 0, .wrong = wrong};
  return run(t, rules, {pusher(t, {0, 1}), borrower(t)}, 0b011);
}

/// The same with a guest in place of job 1; the owner begins asleep.
outcome borrowed_beside_guest(const mistakes& wrong, memory rules) {
  const setting t{.asleep = 1,
                  .borrowed = true,
                  .with_guests = true,
                  .ends = 0,
                  .wrong = wrong};
  return run(t, rules, {pusher(t, {0}), pusher(t, {}, {0}), borrower(t)}, 0b001,
             1);
}

/// The only owner is busy until the guest has run.
outcome guest_beside_long_job(const mistakes& wrong, memory rules) {
  const setting t{.with_guests = true,
                  .job_waits_for_guest = true,
                  .with_stand_in = true,
                  .wrong = wrong};
  return run(t, rules, {pusher(t, {0}), pusher(t, {}, {0})}, 0b001, 1);
}

/// Two guests of which the first waits for the second.
outcome guests_that_meet(const mistakes& wrong, memory rules) {
  const setting t{.seats = 2,
                  .asleep = 1,
                  .with_guests = true,
                  .with_jobs = false,
                  .guests_meet = true,
                  .looks_near = true,
                  .wrong = wrong};
  return run(t, rules, {pusher(t, {}, {0, 1})}, 0, 3);
}

/// The same while a thread has the seat of one owner for a moment.
outcome guests_that_meet_beside_borrower(const mistakes& wrong, memory rules) {
  const setting t{.seats = 2,
                  .borrowed = true,
                  .with_guests = true,
                  .with_jobs = false,
                  .guests_meet = true,
                  .wrong = wrong};
  queue_program w{t.seats, t.wrong, t.with_stand_in};
  const auto taken = w.new_label();
  w.borrow(0, taken);
  w.end_search(0);
  w.give_back(0);
  w.mark(taken);
  w.step("end", kind::local, 0, [](memory_access&) {});
  return run(t, rules, {pusher(t, {}, {0, 1}), w.finish()}, 0, 3);
}

/// Two jobs are pushed, then the queue is stopped.
outcome stopped_workers(const mistakes& wrong, memory rules) {
  const setting t{.seats = 2, .asleep = 2, .with_stop = true, .wrong = wrong};
  return run(t, rules, {pusher(t, {0, 1})}, 0b011, 0, true);
}

constexpr auto plain = memory::sequential;

template <class Run>
void check_all_rules(Run run_it) {
  for (auto rules : all_rules) {
    const auto result = run_it(rules);
    INFO(result.trace);
    CHECK(result.failure == "");
    CHECK(result.ends > 0);
  }
}

} // namespace

TEST_CASE("two workers and a thread outside lose no wake-up") {
  for (std::size_t asleep : {1u, 2u})
    check_all_rules([=](memory m) { return two_workers({}, m, asleep); });
}

TEST_CASE("a job that is given to a searcher is not lost") {
  check_all_rules([](memory m) { return given({}, m); });
  const auto result = given_to_borrower({}, memory::weak); // allows most
  INFO(result.trace);
  CHECK(result.failure == "");
}

TEST_CASE("who was given a job that is stolen comes to rest") {
  check_all_rules([](memory m) { return given_and_stolen({}, m); });
}

TEST_CASE("no job is lost between a borrower and the owner of its seat") {
  check_all_rules([](memory m) { return borrowed({}, m); });
}

TEST_CASE("guests wake owners, whoever serves") {
  check_all_rules([](memory m) { return borrowed_beside_guest({}, m); });
  for (auto& result : {guests_that_meet({}, memory::weak), // allows most
                       guests_that_meet_beside_borrower({}, plain)}) {
    INFO(result.trace);
    CHECK(result.failure == "");
  }
}

TEST_CASE("a guest is not left to an owner that is busy") {
  check_all_rules([](memory m) { return guest_beside_long_job({}, m); });
}

TEST_CASE("stopped workers leave when no job is left") {
  check_all_rules([](memory m) { return stopped_workers({}, m); });
}

TEST_CASE("each mistake is found") {
  const auto workers = [](mistakes m, memory rules = plain) {
    return two_workers(m, rules, 1).failure;
  };
  CHECK(workers({.no_fence_in_push = true}, memory::buffered) != "");
  CHECK(workers({.looks_before_sleeping = true}) != "");
  CHECK(workers({.no_last_look = true}) != "");
  CHECK(workers({.wakes_without_count = true}) != "");
  CHECK(given_to_borrower({.leaves_slot_open = true}, plain).failure != "");
  CHECK(given({.sleeps_beside_slot = true}, plain).failure != "");
  CHECK(given_to_borrower({.drops_given = true}, plain).failure != "");
  CHECK(borrowed({.leaves_blindly = true}, plain).failure != "");
  CHECK(borrowed({.keeps_lent_seats_job = true}, plain).failure != "");
  CHECK(borrowed({.back_without_count = true}, plain).failure != "");
  CHECK(given_to_borrower({.trusts_sleepers = true}, plain).failure != "");
  CHECK(
    given_to_borrower({.no_fence_in_wake_borrowers = true}, memory::buffered)
      .failure
    != "");
  CHECK(borrowed_beside_guest({.wakes_once = true}, plain).failure != "");
  CHECK(guests_that_meet({.ignores_guests = true}, plain).failure != "");
  CHECK(guests_that_meet({.stays_without_search = true}, plain).failure != "");
  CHECK(guest_beside_long_job({.ignores_guests = true}, plain).failure != "");
  CHECK(guest_beside_long_job({.forgets_stand_in = true}, plain).failure != "");
  CHECK(guest_beside_long_job({.stand_in_sleeps_blindly = true}, plain).failure
        != "");
  CHECK(guest_beside_long_job({.no_fence_before_stand_in_sleeps = true},
                              memory::buffered)
          .failure
        != "");
  CHECK(guests_that_meet_beside_borrower({.keeps_guests = true}, plain).failure
        != "");
}

} // TEST_SUITE("model.parking")
