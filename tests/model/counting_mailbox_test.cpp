// SPDX-License-Identifier: Apache-2.0
//
// The counting mailbox of an op: the counter, the last message that needs no
// decrement, re-arming for the slot's next step. The programs follow
// op_actor.cpp and, in the direct form, direct_graph.cpp; change them together.
#include "model/machine.hpp"

#include <doctest/doctest.h>

#include <string>

using namespace troupe::model;

namespace {

constexpr value senders = 3;
constexpr value steps = 2; ///< that use the slot, one after the other

enum shared : variable {
  missing,   ///< messages of the step to come
  running,   ///< `running_`: the step that the op runs
  submitted, ///< the stream has the op; a count to see doubles
  runs,      ///< how often it has run
  step_end,  ///< steps that have ended: a sender begins the next one then
  sent,      ///< sent + sender: what that op computed in this step
};
using kind = instruction::kind;

struct mistakes {
  bool plain_count = false; ///< loads and stores though several threads send
  bool last_below_three = false; ///< takes a count of two for the last message
  bool relaxed_count = false;    ///< a decrement that releases nothing
  bool rearms_late = false;      ///< when the step's end has been told
};

/// Who arms the counter for the slot's next step, and when.
enum class arming : std::uint8_t {
  by_op,          ///< the op's stream, before the op runs
  before_handing, ///< the last sender, before it hands out the op: direct form
  after_handing,  ///< a mistake
};

/// Registers of a sender.
enum local : std::size_t { seen };

/// Steps of one message, in their order in the program.
constexpr std::uint8_t steps_of_message(arming by) {
  return by == arming::after_handing ? 7 : 6;
}

/// One op that sends to the op in each step.
program sender(value number, const mistakes& wrong, arming by) {
  program p;
  for (value step = 0; step < steps; ++step) {
    const auto first = static_cast<std::uint8_t>(p.size());
    const auto told =
      static_cast<std::uint8_t>(first + (by == arming::before_handing ? 3 : 4));
    const auto behind = static_cast<std::uint8_t>(first + steps_of_message(by));
    p.push_back({"admitted: compute", kind::plain, 0,
                 [step](access& a) { return a.load(step_end) >= step; },
                 [=](access& a) {
                   a.store(static_cast<variable>(sent + number),
                           static_cast<value>(step + 1));
                 }});
    p.push_back({"look at the count", kind::plain, 0, {}, [=](access& a) {
                   a.local(seen) = a.load(missing);
                   const auto last = wrong.last_below_three ? 2 : 1;
                   if (!wrong.plain_count && a.local(seen) <= last)
                     a.go_to(static_cast<std::uint8_t>(first + 3));
                 }});
    if (wrong.plain_count)
      p.push_back({"store the count", kind::plain, 0, {}, [=](access& a) {
                     a.store(missing, static_cast<value>(a.local(seen) - 1));
                     a.go_to(a.local(seen) == 1 ? told : behind);
                   }});
    else
      p.push_back({"decrement",
                   wrong.relaxed_count ? kind::change : kind::release,
                   missing,
                   {},
                   [=](access& a) {
                     a.go_to(a.shared(missing) == 1 ? told : behind);
                     --a.shared(missing);
                   }});
    const auto last_store =
      static_cast<value>(by == arming::before_handing ? senders : 0);
    p.push_back({"last: store", kind::plain, 0, {}, [=](access& a) {
                   a.store(missing, last_store);
                 }});
    p.push_back({"last: running", kind::plain, 0, {}, [step](access& a) {
                   a.store(running, static_cast<value>(step + 1));
                 }});
    p.push_back({"last: submit", kind::release, submitted, {}, [](access& a) {
                   ++a.shared(submitted);
                 }});
    if (by == arming::after_handing)
      p.push_back({"last: arm", kind::plain, 0, {}, [](access& a) {
                     a.store(missing, senders);
                   }});
  }
  return p;
}

/// The op's stream: runs it, arms the counter for the slot's next step and
/// tells the end of the step.
program stream(const mistakes& wrong, arming by) {
  program p;
  const auto rearm = instruction{
    "re-arm", kind::plain, 0, {}, [](access& a) { a.store(missing, senders); }};
  for (value step = 0; step < steps; ++step) {
    p.push_back({"take the op", kind::change, submitted,
                 [](access& a) { return a.shared(submitted) > 0; },
                 [](access& a) { --a.shared(submitted); }});
    if (by == arming::by_op && !wrong.rearms_late)
      p.push_back(rearm);
    p.push_back({"run", kind::plain, 0, {}, [step](access& a) {
                   a.store(runs, static_cast<value>(a.load(runs) + 1));
                   a.local(0) = a.load(running) == step + 1;
                   for (value i = 0; i < senders; ++i)
                     a.local(0) &=
                       a.load(static_cast<variable>(sent + i)) == step + 1;
                   if (!a.local(0))
                     a.store(runs, -1);
                 }});
    p.push_back({"tell the end", kind::release, step_end, {}, [](access& a) {
                   ++a.shared(step_end);
                 }});
    if (wrong.rearms_late)
      p.push_back(rearm);
  }
  return p;
}

std::string submitted_once(const state& s) {
  if (s.shared[submitted] > 1)
    return "the op is ready twice";
  return s.shared[runs] < 0 ? "the op runs before a value is there" : "";
}

outcome run(memory rules, const mistakes& wrong, arming by = arming::by_op) {
  machine m;
  m.rules = rules;
  m.initial.shared[missing] = senders;
  for (value i = 0; i < senders; ++i)
    m.threads.push_back(sender(i, wrong, by));
  m.threads.push_back(stream(wrong, by));
  m.always = submitted_once;
  m.at_end = [](const state& s) -> std::string {
    if (s.shared[runs] != steps)
      return "a message is lost: the op does not run";
    return s.shared[submitted] == 0 ? "" : "the op is ready too often";
  };
  return explore(m);
}

constexpr memory all_rules[] = {memory::sequential, memory::buffered,
                                memory::weak};

} // namespace

TEST_SUITE("model.counting_mailbox") {

TEST_CASE("an op runs once per step, behind all that it waits for") {
  for (auto by : {arming::by_op, arming::before_handing})
    for (auto rules : all_rules) {
      const auto result = run(rules, {}, by);
      INFO(result.trace);
      CHECK(result.failure == "");
      CHECK(result.ends > 0);
    }
}

TEST_CASE("the last sender must arm before it hands out the op") {
  CHECK(run(memory::sequential, {}, arming::after_handing).failure != "");
}

TEST_CASE("counting with plain stores from several threads loses a message") {
  CHECK(run(memory::sequential, {.plain_count = true}).failure
        == "a message is lost: the op does not run");
}

TEST_CASE("who sees a count of two is not the last") {
  CHECK(run(memory::sequential, {.last_below_three = true}).failure
        == "the op runs before a value is there");
}

TEST_CASE("a decrement that releases nothing lets the op run too early") {
  CHECK(run(memory::buffered, {.relaxed_count = true}).failure == "");
  CHECK(run(memory::weak, {.relaxed_count = true}).failure
        == "the op runs before a value is there");
}

TEST_CASE("a counter that is armed behind the step's end miscounts") {
  CHECK(run(memory::sequential, {.rearms_late = true}).failure
        == "the op runs before a value is there");
}

} // TEST_SUITE("model.counting_mailbox")
