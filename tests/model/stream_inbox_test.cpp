// SPDX-License-Identifier: Apache-2.0
//
// The inbox of a serial stream: who schedules it, who drains it, when it goes
// idle. The programs follow stream_actor.cpp; change both together.
#include "model/machine.hpp"

#include <doctest/doctest.h>

#include <string>

using namespace troupe::model;

TEST_SUITE("model.stream_inbox") {

namespace {

constexpr value op_count = 3;

enum shared : variable {
  inbox,     ///< idle_mark, nobody or the newest op (1 and up)
  scheduled, ///< the stream is in the job queue; a count to see doubles
  draining,  ///< test: threads inside `run`
  ready,     ///< the drainer's own ops, a bit per op
  next,      ///< next + op: its link
  runs = next + 1 + op_count, ///< runs + op: how often it has run
};
constexpr value nobody = 0;
constexpr value idle_mark = -1;
using kind = instruction::kind;

struct mistakes {
  bool goes_idle_by_store = false; ///< instead of compare_exchange
  bool pushes_relaxed = false;     ///< instead of release
  bool always_schedules = false;   ///< not only who replaces the mark
  bool idle_relaxed = false;       ///< the compare_exchange to the mark
};

constexpr variable link(value op) {
  return static_cast<variable>(next + op);
}

/// `submit` of ops first, first + 1, ... up to last.
program submitter(value first, value last, const mistakes& wrong) {
  program p;
  const auto order = wrong.pushes_relaxed ? kind::change : kind::release;
  for (auto op = first; op <= last; ++op) {
    const auto again = static_cast<std::uint8_t>(p.size());
    const auto behind = static_cast<std::uint8_t>(p.size() + 3);
    p.push_back({"submit: link", kind::plain, 0, {}, [op](memory_access& a) {
                   a.local(0) = a.load(inbox);
                   a.store(link(op),
                           a.local(0) == idle_mark ? nobody : a.local(0));
                 }});
    p.push_back({"submit: compare_exchange",
                 order,
                 inbox,
                 {},
                 [=, all = wrong.always_schedules](memory_access& a) {
                   if (a.shared(inbox) != a.local(0))
                     return a.go_to(again);
                   a.shared(inbox) = op;
                   if (a.local(0) != idle_mark && !all)
                     a.go_to(behind);
                 }});
    // Through a list of the job queue, whose flag is released behind it.
    p.push_back(
      {"submit: schedule", kind::release, scheduled, {}, [](memory_access& a) {
         ++a.shared(scheduled);
       }});
  }
  return p;
}

enum drainer_step : std::uint8_t {
  wait,
  look,
  take,
  launch,
  go_idle,
  give_way,
};

/// Registers of a drainer.
enum local : std::size_t { newest, launches };

void take_inbox(memory_access& a) {
  auto taken = a.load(ready);
  for (auto op = a.local(newest); op != nobody; op = a.load(link(op))) {
    if (taken >> op & 1) { // a broken chain may be a ring
      a.local(newest) = -2;
      break;
    }
    taken = static_cast<value>(taken | 1 << op);
  }
  a.store(ready, taken);
}

value lowest(value set) {
  value op = 1;
  while ((set >> op & 1) == 0)
    ++op;
  return op;
}

/// `run` of the stream on one worker, again and again.
/// @param yields after each launch
/// @param tells op 1 makes op 3 ready, in the draining thread
program drainer(const mistakes& wrong, bool yields, bool tells) {
  program p;
  p.push_back({"run", kind::change, scheduled,
               [](memory_access& a) { return a.shared(scheduled) > 0; },
               [](memory_access& a) {
                 --a.shared(scheduled);
                 ++a.shared(draining);
               }});
  p.push_back({"look at the inbox", kind::plain, 0, {}, [](memory_access& a) {
                 if (a.load(inbox) == nobody)
                   a.go_to(launch);
               }});
  p.push_back({"exchange", kind::change, inbox, {}, [](memory_access& a) {
                 a.local(newest) = a.shared(inbox);
                 a.shared(inbox) = nobody;
                 take_inbox(a);
               }});
  p.push_back({"launch", kind::plain, 0, {}, [yields, tells](memory_access& a) {
                 const auto set = a.load(ready);
                 if (set == 0)
                   return;
                 const auto op = lowest(set);
                 auto left = static_cast<value>(set & ~(1 << op));
                 if (tells && op == 1)
                   left = static_cast<value>(left | 1 << 3);
                 a.store(ready, left);
                 const auto count = static_cast<variable>(runs + op);
                 a.store(count, static_cast<value>(a.load(count) + 1));
                 a.go_to(yields ? give_way : look);
               }});
  if (wrong.goes_idle_by_store)
    p.push_back({"go idle", kind::plain, 0, {}, [](memory_access& a) {
                   a.store(inbox, idle_mark);
                   --a.shared(draining);
                   a.go_to(wait);
                 }});
  else
    p.push_back({"go idle: compare_exchange",
                 wrong.idle_relaxed ? kind::change : kind::release,
                 inbox,
                 {},
                 [](memory_access& a) {
                   if (a.shared(inbox) != nobody)
                     return a.go_to(look);
                   a.shared(inbox) = idle_mark;
                   --a.shared(draining);
                   a.go_to(wait);
                 }});
  p.push_back({"yield", kind::release, scheduled, {}, [](memory_access& a) {
                 --a.shared(draining);
                 ++a.shared(scheduled);
                 a.go_to(wait);
               }});
  return p;
}

std::string one_at_a_time(const state& s) {
  if (s.shared[draining] > 1)
    return "two threads drain";
  if (s.shared[scheduled] > 1)
    return "the stream is in the queue twice";
  for (value op = 1; op <= op_count; ++op)
    if (s.shared[static_cast<std::size_t>(runs + op)] > 1)
      return "an op ran twice";
  return "";
}

std::string all_ran(const state& s) {
  for (value op = 1; op <= op_count; ++op)
    if (s.shared[static_cast<std::size_t>(runs + op)] != 1)
      return "an op is lost";
  if (s.shared[inbox] != idle_mark)
    return "the stream is not idle";
  return "";
}

machine make(memory rules, std::vector<program> threads) {
  machine m;
  m.rules = rules;
  m.initial.shared[inbox] = idle_mark;
  m.threads = std::move(threads);
  m.always = one_at_a_time;
  m.at_end = all_ran;
  return m;
}

/// Two threads submit, two workers drain.
outcome run(memory rules, const mistakes& wrong, bool yields = false) {
  return explore(make(rules, {submitter(1, 2, wrong), submitter(3, 3, wrong),
                              drainer(wrong, yields, false),
                              drainer(wrong, yields, false)}));
}

constexpr mistakes none{};
constexpr memory all_rules[] = {memory::sequential, memory::buffered,
                                memory::weak};

} // namespace

TEST_CASE("every op runs once and one thread drains at a time") {
  for (auto rules : all_rules) {
    const auto result = run(rules, none);
    INFO(result.trace);
    CHECK(result.failure == "");
    CHECK(result.ends > 0);
  }
}

TEST_CASE("a drain that yields may go on in another thread at once") {
  for (auto rules : all_rules) {
    const auto result = run(rules, none, true);
    INFO(result.trace);
    CHECK(result.failure == "");
  }
}

TEST_CASE("what the draining thread itself makes ready runs too") {
  for (auto rules : all_rules)
    for (bool yields : {false, true}) {
      const auto result = explore(make(
        rules, {submitter(1, 1, none), submitter(2, 2, none),
                drainer(none, yields, true), drainer(none, yields, true)}));
      INFO(result.trace);
      CHECK(result.failure == "");
    }
}

TEST_CASE("a drainer that goes idle without a look loses an op") {
  mistakes wrong;
  wrong.goes_idle_by_store = true;
  CHECK(run(memory::sequential, wrong).failure == "an op is lost");
}

TEST_CASE("a push that is not a release breaks the chain of ops") {
  mistakes wrong;
  wrong.pushes_relaxed = true;
  CHECK(run(memory::buffered, wrong).failure == "");
  CHECK(run(memory::weak, wrong).failure == "an op ran twice");
}

TEST_CASE("a drainer that goes idle without a release hands on stale ops") {
  mistakes wrong;
  wrong.idle_relaxed = true;
  CHECK(run(memory::weak, wrong).failure == "an op ran twice");
}

TEST_CASE("two submitters that both schedule start two drains") {
  mistakes wrong;
  wrong.always_schedules = true;
  CHECK(run(memory::sequential, wrong).failure
        == "the stream is in the queue twice");
}

} // TEST_SUITE("model.stream_inbox")
