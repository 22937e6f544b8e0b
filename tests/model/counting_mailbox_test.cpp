// SPDX-License-Identifier: Apache-2.0
//
// The counting mailbox of a handle: messages that count down, the last one that
// arms it for its next step and hands the op to its stream. The programs follow
// `engine::counts_last` and `engine::tell_op`; change them together.
#include "model/machine.hpp"

#include <doctest/doctest.h>

#include <string>

using namespace troupe::model;

TEST_SUITE("model.counting_mailbox") {

namespace {

constexpr value senders = 3;
constexpr value steps = 2; ///< that use the counter, one after the other

enum shared : variable {
  counter,   ///< messages still to come, and above them the step's round
  ready_for, ///< the step that the op is ready for, plus one
  submitted, ///< the stream has the op; a count to see doubles
  admitted,  ///< steps that have begun
  openings,  ///< how often the mailbox has opened; not in the code
  runs,      ///< how often the op has run, -1: too early; not in the code
  sent,      ///< sent + sender: what that op computed in this step
};
using kind = instruction::kind;

struct mistakes {
  bool plain_count = false; ///< loads and stores though several threads send
  bool last_below_three = false; ///< takes a count of two for the last message
  bool relaxed_count = false;    ///< a decrement that releases nothing
  bool arms_late = false;        ///< behind the hand-out
  bool keeps_round = false;      ///< arms without counting the round up
};

/// Registers of a sender.
enum local : std::size_t { left };

constexpr value one_round = 16;

value messages(value word) {
  return static_cast<value>(word % one_round);
}
value round_of(value word) {
  return static_cast<value>(word / one_round);
}

instruction compute(value number, value step) {
  return {"compute", kind::plain, 0,
          [step](memory_access& a) { return a.load(admitted) > step; },
          [=](memory_access& a) {
            a.store(static_cast<variable>(sent + number),
                    static_cast<value>(step + 1));
          }};
}

instruction get_ready(value step) {
  return {"last: step", kind::plain, 0, {}, [step](memory_access& a) {
            a.store(ready_for, static_cast<value>(step + 1));
          }};
}

instruction submit() {
  return {"last: submit", kind::release, submitted, {}, [](memory_access& a) {
            ++a.shared(submitted);
          }};
}

instruction arm(const mistakes& wrong) {
  return {"last: arm",
          kind::plain,
          0,
          {},
          [keeps = wrong.keeps_round](memory_access& a) {
            a.store(counter, static_cast<value>(a.local(left) + senders
                                                + (keeps ? 0 : one_round)));
            a.store(openings, static_cast<value>(a.load(openings) + 1));
          }};
}

/// One op that sends to the mailbox in each step.
program sender(value number, const mistakes& wrong) {
  const value last = wrong.last_below_three ? 1 : 0;
  program p;
  for (value step = 0; step < steps; ++step) {
    const auto first = static_cast<std::uint8_t>(p.size());
    const auto open = static_cast<std::uint8_t>(first + 3);
    const auto behind = static_cast<std::uint8_t>(first + 6);
    p.push_back(compute(number, step));
    p.push_back(
      {"look at the count", kind::plain, 0, {}, [=](memory_access& a) {
         a.local(left) = static_cast<value>(a.load(counter) - 1);
         if (messages(a.local(left)) <= last)
           a.go_to(open);
       }});
    if (wrong.plain_count)
      p.push_back(
        {"store the count", kind::plain, 0, {}, [=](memory_access& a) {
           a.store(counter, a.local(left));
           a.go_to(behind);
         }});
    else
      p.push_back({"decrement",
                   wrong.relaxed_count ? kind::change : kind::release,
                   counter,
                   {},
                   [=](memory_access& a) {
                     a.local(left) = --a.shared(counter);
                     if (messages(a.local(left)) > last)
                       a.go_to(behind);
                   }});
    if (!wrong.arms_late)
      p.push_back(arm(wrong));
    p.push_back(get_ready(step));
    p.push_back(submit());
    if (wrong.arms_late)
      p.push_back(arm(wrong));
  }
  return p;
}

/// Who begins the steps, and the op's stream.
program stream() {
  program p;
  for (value step = 0; step < steps; ++step) {
    p.push_back({"start", kind::release, admitted, {}, [](memory_access& a) {
                   ++a.shared(admitted);
                 }});
    p.push_back({"take the op", kind::change, submitted,
                 [](memory_access& a) { return a.shared(submitted) > 0; },
                 [](memory_access& a) { --a.shared(submitted); }});
    p.push_back(
      {"run", kind::plain, 0, {}, [step](memory_access& a) {
         auto there = a.load(ready_for) == step + 1;
         for (value i = 0; i < senders; ++i)
           there &= a.load(static_cast<variable>(sent + i)) == step + 1;
         a.store(runs, there ? static_cast<value>(a.load(runs) + 1) : -1);
       }});
  }
  return p;
}

std::string submitted_once(const state& s) {
  if (s.shared[submitted] > 1)
    return "the op is ready twice";
  return s.shared[runs] < 0 ? "a value is not there" : "";
}

/// What `engine::state_of` says of a step that has begun. It reads without
/// order, so this holds where all memory is seen at once.
std::string described_well(const state& s) {
  if (const auto wrong = submitted_once(s); !wrong.empty())
    return wrong;
  if (s.shared[admitted] == 0)
    return "";
  const auto waits = round_of(s.shared[counter]) == s.shared[admitted] - 1;
  const auto opened = s.shared[openings] == s.shared[admitted];
  return waits == opened ? "a description takes all messages for none" : "";
}

outcome run(memory rules, const mistakes& wrong = {}) {
  machine m;
  m.rules = rules;
  m.initial.shared[counter] = senders;
  for (value i = 0; i < senders; ++i)
    m.threads.push_back(sender(i, wrong));
  m.threads.push_back(stream());
  m.always = rules == memory::sequential ? described_well : submitted_once;
  m.at_end = [](const state& s) -> std::string {
    if (s.shared[runs] != steps)
      return "a message is lost: the op does not run";
    return s.shared[submitted] == 0 ? "" : "the op is ready too often";
  };
  return explore(m);
}

} // namespace

TEST_CASE("an op runs once per step, behind all that it waits for") {
  for (auto rules : {memory::sequential, memory::buffered, memory::weak}) {
    const auto result = run(rules);
    INFO(result.trace);
    CHECK(result.failure == "");
    CHECK(result.ends > 0);
  }
}

TEST_CASE("the last sender must arm before it hands out the op") {
  CHECK(run(memory::buffered, {.arms_late = true}).failure != "");
}

TEST_CASE("counting with plain stores from several threads loses a message") {
  CHECK(run(memory::buffered, {.plain_count = true}).failure
        == "a message is lost: the op does not run");
}

TEST_CASE("who sees a count of two is not the last") {
  CHECK(run(memory::buffered, {.last_below_three = true}).failure
        == "a value is not there");
}

TEST_CASE("a decrement that releases nothing lets the op run too early") {
  CHECK(run(memory::buffered, {.relaxed_count = true}).failure == "");
  CHECK(run(memory::weak, {.relaxed_count = true}).failure
        == "a value is not there");
}

TEST_CASE("the round tells a mailbox that has opened from one not told") {
  CHECK(run(memory::sequential, {.keeps_round = true}).failure
        == "a description takes all messages for none");
}

} // TEST_SUITE("model.counting_mailbox")
