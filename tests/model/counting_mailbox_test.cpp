// SPDX-License-Identifier: Apache-2.0
//
// The counting mailbox of an op: messages that count down, the last one that
// hands the op to its stream, arming for the slot's next step. The programs
// follow op_actor.cpp (wired) and direct_graph.cpp (direct); change them
// together.
#include "model/machine.hpp"

#include <doctest/doctest.h>

#include <string>

using namespace troupe::model;

namespace {

constexpr value senders = 3;
constexpr value steps = 2; ///< that use the slot, one after the other

/// The two mailboxes of the runtime.
enum class form : std::uint8_t {
  wired,  ///< counts to zero; the op arms it when it has run
  direct, ///< counts twice the messages, its last bit flips when it opens; the
          ///< last sender arms it before it hands the op out
};

enum shared : variable {
  missing,   ///< the counter
  closed,    ///< direct: its last bit is that of mailboxes that have not opened
  running,   ///< the step that the op is ready for
  submitted, ///< the stream has the op; a count to see doubles
  admitted,  ///< steps that have begun
  temporary, ///< what the senders read: the step that wrote it; 0: released
  openings,  ///< how often the mailbox has opened; not in the code
  runs,      ///< how often the op has run, -1: too early; not in the code
  sent,      ///< sent + sender: what that op computed in this step
};
using kind = instruction::kind;

struct mistakes {
  bool plain_count = false; ///< loads and stores though several threads send
  bool last_below_three = false; ///< takes a count of two for the last message
  bool relaxed_count = false;    ///< a decrement that releases nothing
  bool arms_late = false;        ///< behind the hand-out or the step's end
  bool keeps_bit = false;        ///< opens without flipping the last bit
  bool releases_first = false;   ///< the temporary goes with the first message
};

/// Registers of a sender.
enum local : std::size_t { seen };

value armed(int last_bit) {
  return static_cast<value>(2 * senders + last_bit);
}

instruction compute(value number, value step) {
  return {"compute", kind::plain, 0,
          [step](access& a) { return a.load(admitted) > step; },
          [=](access& a) {
            a.store(static_cast<variable>(sent + number),
                    static_cast<value>(step + 1));
            if (a.load(temporary) != step + 1)
              a.store(runs, -1);
          }};
}

instruction begin_run(value step) {
  return {"last: running", kind::plain, 0, {}, [step](access& a) {
            a.store(running, static_cast<value>(step + 1));
          }};
}

instruction submit() {
  return {"last: submit", kind::release, submitted, {}, [](access& a) {
            ++a.shared(submitted);
          }};
}

/// One op that sends to the op in each step: `op_actor::arrive`.
program wired_sender(value number, const mistakes& wrong) {
  program p;
  for (value step = 0; step < steps; ++step) {
    const auto behind = static_cast<std::uint8_t>(p.size() + 4);
    p.push_back(compute(number, step));
    p.push_back({"decrement",
                 wrong.relaxed_count ? kind::change : kind::release,
                 missing,
                 {},
                 [=](access& a) {
                   if (--a.shared(missing) > 0)
                     a.go_to(behind);
                 }});
    p.push_back(begin_run(step));
    p.push_back(submit());
  }
  return p;
}

/// The same by `direct_graph::arrive` and `open`.
program direct_sender(value number, const mistakes& wrong) {
  const auto last = static_cast<value>(wrong.last_below_three ? 5 : 3);
  const auto arm = instruction{
    "last: arm", kind::plain, 0, {}, [=](access& a) {
      a.store(missing, armed((a.local(seen) & 1) ^ (wrong.keeps_bit ? 0 : 1)));
      a.store(openings, static_cast<value>(a.load(openings) + 1));
    }};
  program p;
  for (value step = 0; step < steps; ++step) {
    const auto first = static_cast<std::uint8_t>(p.size());
    const auto open = static_cast<std::uint8_t>(first + 3);
    const auto behind = static_cast<std::uint8_t>(first + 7);
    p.push_back(compute(number, step));
    if (wrong.plain_count) {
      p.push_back({"load the count", kind::plain, 0, {}, [](access& a) {
                     a.local(seen) = static_cast<value>(a.load(missing) - 2);
                   }});
      p.push_back({"store the count", kind::plain, 0, {}, [=](access& a) {
                     if (a.local(seen) <= 1)
                       return a.go_to(open);
                     a.store(missing, a.local(seen));
                     a.go_to(behind);
                   }});
    } else {
      p.push_back({"look at the count", kind::plain, 0, {}, [=](access& a) {
                     a.local(seen) = a.load(missing);
                     if (wrong.releases_first)
                       a.store(temporary, 0);
                     if (a.local(seen) <= last)
                       a.go_to(open);
                   }});
      p.push_back({"decrement",
                   wrong.relaxed_count ? kind::change : kind::release,
                   missing,
                   {},
                   [=](access& a) {
                     a.local(seen) = a.shared(missing);
                     a.shared(missing) -= 2;
                     if (a.local(seen) > last)
                       a.go_to(behind);
                   }});
    }
    if (!wrong.arms_late)
      p.push_back(arm);
    p.push_back({"last: release", kind::plain, 0, {}, [](access& a) {
                   a.store(temporary, 0);
                 }});
    p.push_back(begin_run(step));
    p.push_back(submit());
    if (wrong.arms_late)
      p.push_back(arm);
  }
  return p;
}

/// Who begins the steps, and the op's stream.
program stream(form which, const mistakes& wrong) {
  const auto rearm = instruction{
    "re-arm", kind::plain, 0, {}, [](access& a) { a.store(missing, senders); }};
  const auto late = which == form::wired && wrong.arms_late;
  program p;
  for (value step = 0; step < steps; ++step) {
    p.push_back({"write the temporary", kind::plain, 0, {}, [step](access& a) {
                   a.store(temporary, static_cast<value>(step + 1));
                 }});
    if (which == form::direct)
      p.push_back(
        {"start: all closed", kind::change, closed, {}, [](access& a) {
           ++a.shared(closed);
         }});
    p.push_back({"start", kind::release, admitted, {}, [](access& a) {
                   ++a.shared(admitted);
                 }});
    if (late && step > 0)
      p.push_back(rearm);
    p.push_back({"take the op", kind::change, submitted,
                 [](access& a) { return a.shared(submitted) > 0; },
                 [](access& a) { --a.shared(submitted); }});
    p.push_back(
      {"run", kind::plain, 0, {}, [step](access& a) {
         auto there = a.load(running) == step + 1;
         for (value i = 0; i < senders; ++i)
           there &= a.load(static_cast<variable>(sent + i)) == step + 1;
         a.store(runs, there ? static_cast<value>(a.load(runs) + 1) : -1);
       }});
    if (which == form::wired && !late)
      p.push_back(rearm);
  }
  return p;
}

std::string submitted_once(const state& s) {
  if (s.shared[submitted] > 1)
    return "the op is ready twice";
  return s.shared[runs] < 0 ? "a value is not there" : "";
}

/// What `direct_graph::missing` says of a step that has begun. It reads both
/// without order, so this holds where all memory is seen at once.
std::string described_well(const state& s) {
  if (const auto wrong = submitted_once(s); !wrong.empty())
    return wrong;
  const auto waits = (s.shared[missing] & 1) == (s.shared[closed] & 1);
  const auto opened = s.shared[openings] == s.shared[closed];
  return waits == opened ? "a description takes all messages for none" : "";
}

outcome run(memory rules, form which, const mistakes& wrong = {}) {
  machine m;
  m.rules = rules;
  const auto direct = which == form::direct;
  m.initial.shared[missing] = direct ? armed(1) : senders;
  for (value i = 0; i < senders; ++i)
    m.threads.push_back(direct ? direct_sender(i, wrong)
                               : wired_sender(i, wrong));
  m.threads.push_back(stream(which, wrong));
  m.always =
    direct && rules == memory::sequential ? described_well : submitted_once;
  m.at_end = [](const state& s) -> std::string {
    if (s.shared[runs] != steps)
      return "a message is lost: the op does not run";
    return s.shared[submitted] == 0 ? "" : "the op is ready too often";
  };
  return explore(m);
}

constexpr memory all_rules[] = {memory::sequential, memory::buffered,
                                memory::weak};
constexpr form all_forms[] = {form::wired, form::direct};

} // namespace

TEST_SUITE("model.counting_mailbox") {

TEST_CASE("an op runs once per step, behind all that it waits for") {
  for (auto which : all_forms)
    for (auto rules : all_rules) {
      const auto result = run(rules, which);
      INFO(result.trace);
      CHECK(result.failure == "");
      CHECK(result.ends > 0);
    }
}

TEST_CASE("the last sender must arm before it hands out the op") {
  CHECK(run(memory::buffered, form::direct, {.arms_late = true}).failure != "");
}

TEST_CASE("counting with plain stores from several threads loses a message") {
  CHECK(run(memory::buffered, form::direct, {.plain_count = true}).failure
        == "a message is lost: the op does not run");
}

TEST_CASE("who sees a count of two is not the last") {
  CHECK(run(memory::buffered, form::direct, {.last_below_three = true}).failure
        == "a value is not there");
}

TEST_CASE("a decrement that releases nothing lets the op run too early") {
  for (auto which : all_forms) {
    CHECK(run(memory::buffered, which, {.relaxed_count = true}).failure == "");
    CHECK(run(memory::weak, which, {.relaxed_count = true}).failure
          == "a value is not there");
  }
}

TEST_CASE("a counter that is armed behind the step's end miscounts") {
  CHECK(run(memory::sequential, form::wired, {.arms_late = true}).failure
        != "");
}

TEST_CASE("the last bit tells a mailbox that has opened from one not told") {
  CHECK(run(memory::sequential, form::direct, {.keeps_bit = true}).failure
        == "a description takes all messages for none");
}

TEST_CASE("a temporary goes when the mailbox opens, not before") {
  CHECK(run(memory::sequential, form::direct, {.releases_first = true}).failure
        == "a value is not there");
}

} // TEST_SUITE("model.counting_mailbox")
