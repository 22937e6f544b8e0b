// SPDX-License-Identifier: Apache-2.0
//
// How workers of a job_queue sleep and wake: seats with owner and borrower,
// searchers and sleepers, claims, guests, stop. The programs follow
// job_queue.cpp; change both together. Left out: the foreign list, which is a
// list as any other, and whom wake_one prefers.
#include "model/machine.hpp"

#include <doctest/doctest.h>

#include <array>
#include <initializer_list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

using namespace troupe::model;

namespace {

using troupe::model::access; // not POSIX's

constexpr std::size_t most_seats = 2;
constexpr std::size_t job_count = 3;

enum shared : variable {
  seat, ///< seat + number: its word
  searchers = seat + most_seats,
  sleepers,
  stopped,
  done,                        ///< what a borrower waits for
  lists,                       ///< lists + number: a bit per job
  guests = lists + most_seats, ///< the list of guests, a bit each
  flags,                       ///< flags + number: a list's spin flag
  guest_flag = flags + most_seats,
  runs,                          ///< test: how often a job has run
  guest_runs = runs + job_count, ///< test: guests that have run
};

/// Bits of a seat's word, as in worker_seat.
enum bits : value {
  present = 1,
  up = 2,
  lent = 4,
  borrower_up = 8,
  searching = 16,
  claimed = 32,
};

using kind = instruction::kind;

/// What a mistake leaves out or does wrongly.
struct mistakes {
  bool no_fence_in_push = false;      ///< F1
  bool looks_before_sleeping = false; ///< without F2 the look may come early
  bool no_last_look = false;          ///< a search ends without one
  bool gives_blindly = false;         ///< give() does not look back
  bool leaves_blindly = false;        ///< give_back() without a look
  bool wakes_once = false;            ///< wake() does not try again
  bool ignores_guests = false;        ///< no look for guests at a search's end
  bool sleeps_though_claimed = false;
  bool no_fence_in_wake_borrowers = false;
  bool trusts_sleepers = false;      ///< in wake_borrowers
  bool wakes_without_count = false;  ///< wake() leaves `sleepers`
  bool keeps_lent_seats_job = false; ///< an owner that wakes beside a borrower
  bool back_without_count = false;   ///< give_back() forgets the owner
};

constexpr variable of(variable first, std::size_t number) {
  return static_cast<variable>(first + number);
}

bool server_sleeps(value w) {
  return (w & lent) ? !(w & borrower_up) : (w & (present | up)) == present;
}

/// Registers.
enum local : std::size_t { job, word, look };

/// Goes to labels, whose places are known when the program is whole.
struct jumper {
  void operator()(access& a, std::size_t label) const {
    a.go_to((*places)[label]);
  }
  using table = std::array<std::uint8_t, 256>;
  std::shared_ptr<table> places = std::make_shared<table>();
};

/// Writes a program with labels. Its steps do not refer to it.
class writer {
public:
  writer(std::size_t seats, const mistakes& wrong)
    : seats_(seats), wrong_(wrong) {}

  using label = std::size_t;
  label new_label() { return labels_++; }
  void mark(label l) {
    (*jump_.places)[l] = static_cast<std::uint8_t>(code_.size());
  }
  program finish() { return std::move(code_); }
  /// The step at which a thread sleeps.
  std::uint8_t asleep() const { return asleep_; }

  template <class Act>
  void step(const char* name, kind what, variable of_, Act act,
            std::function<bool(access&)> can = {}) {
    code_.push_back({name, what, of_, std::move(can), std::move(act)});
  }

  // -- lists --

  void add(std::size_t list, int which) {
    lock(of(flags, list));
    step("add to the list", kind::plain, 0, [=](access& a) {
      const auto l = of(lists, list);
      a.store(l, static_cast<value>(a.load(l) | 1 << which));
      a.store_release(of(flags, list), 0);
    });
  }
  void fence(const char* name) {
    step(name, kind::fence, 0, [](access&) {});
  }
  void after_push() {
    if (!wrong_.no_fence_in_push)
      fence("F1");
    wake_if_nobody_searches();
  }
  void push_to(std::size_t home, int which) {
    add(home, which);
    after_push();
  }
  void push_guest(int which) {
    lock(guest_flag);
    step("add a guest", kind::plain, 0, [=](access& a) {
      a.store(guests, static_cast<value>(a.load(guests) | 1 << which));
      a.store_release(guest_flag, 0);
    });
    fence("F1");
    wake_owner_if_none_searches();
  }
  /// To local `job`, else goes to `none`.
  void take(variable list, variable flag, label none) {
    step("look at a list", kind::plain, 0,
         [=, jump = jump_, wrong = wrong_](access& a) {
           if (a.load(list) == 0)
             jump(a, none);
         });
    lock(flag);
    step("take", kind::plain, 0, [=, jump = jump_, wrong = wrong_](access& a) {
      const auto all = a.load(list);
      value first = 0;
      while (all != 0 && (all >> first & 1) == 0)
        ++first;
      a.local(job) = first;
      if (all != 0)
        a.store(list, static_cast<value>(all & ~(1 << first)));
      else
        jump(a, none);
      a.store_release(flag, 0);
    });
  }

  // -- waking --

  /// Sets `to_set(word)` and goes to `woken`; falls through if that is 0.
  template <class ToSet>
  void wake_by(std::size_t s, ToSet to_set, label woken) {
    const auto again = new_label(), not_this = new_label();
    mark(again);
    step("wake: read the seat", kind::plain, 0, [=, jump = jump_](access& a) {
      const auto w = a.load(of(seat, s));
      if (to_set(w) == 0)
        return jump(a, not_this);
      a.local(word) = w;
    });
    step("wake: set bits", kind::release, of(seat, s),
         [=, jump = jump_, wrong = wrong_](access& a) {
           auto& w = a.shared(of(seat, s));
           if (w != std::exchange(a.local(word), value{0}))
             return jump(a, wrong.wakes_once ? not_this : again);
           const auto add = to_set(w);
           w = static_cast<value>(w | add);
           if (!(add & searching))
             jump(a, woken);
         });
    if (!wrong_.wakes_without_count)
      count(sleepers, -1);
    step("count", kind::change, searchers,
         [=, jump = jump_, wrong = wrong_](access& a) {
           ++a.shared(searchers);
           jump(a, woken);
         });
    mark(not_this);
  }
  void wake(std::size_t s, label woken) {
    wake_by(
      s,
      [](value w) -> value {
        if (!server_sleeps(w))
          return 0;
        return static_cast<value>(searching | ((w & lent) ? borrower_up : up));
      },
      woken);
  }
  void wake_owner(std::size_t s, label woken) {
    wake_by(
      s,
      [](value w) -> value {
        if ((w & (present | up)) != present)
          return 0;
        return static_cast<value>((w & lent) ? up : up | searching);
      },
      woken);
  }
  void wake_if_nobody_searches() {
    const auto behind = new_label();
    step("does someone search?", kind::plain, 0,
         [=, jump = jump_, wrong = wrong_](access& a) {
           if (a.load(searchers) > 0)
             jump(a, behind);
         });
    step("does someone sleep?", kind::plain, 0,
         [=, jump = jump_, wrong = wrong_](access& a) {
           if (a.load(sleepers) <= 0)
             jump(a, behind);
         });
    for (std::size_t s = 0; s < seats_; ++s)
      wake(s, behind);
    mark(behind);
  }
  void wake_owner_if_none_searches() {
    const auto behind = new_label();
    for (std::size_t s = 0; s < seats_; ++s)
      step("does an owner search?", kind::plain, 0,
           [=, jump = jump_, wrong = wrong_](access& a) {
             constexpr auto looking = present | up | searching;
             if ((a.load(of(seat, s)) & (looking | lent)) == looking)
               jump(a, behind);
           });
    for (std::size_t s = 0; s < seats_; ++s)
      wake_owner(s, behind);
    mark(behind);
  }
  void wake_borrowers() {
    if (!wrong_.no_fence_in_wake_borrowers)
      fence("F1");
    const auto behind = new_label();
    if (wrong_.trusts_sleepers)
      branch(
        "does someone sleep?", [](access& a) { return a.load(sleepers) <= 0; },
        behind);
    for (std::size_t s = 0; s < seats_; ++s) {
      const auto next = new_label();
      step("is it lent?", kind::plain, 0,
           [=, jump = jump_, wrong = wrong_](access& a) {
             if (!(a.load(of(seat, s)) & lent))
               jump(a, next);
           });
      wake(s, next);
      mark(next);
    }
    mark(behind);
  }
  void tell_end() {
    step("done", kind::plain, 0, [](access& a) { a.store_release(done, 1); });
    wake_borrowers();
  }
  void stop() {
    step("stop", kind::plain, 0, [](access& a) { a.store(stopped, 1); });
    fence("F1");
    for (std::size_t s = 0; s < seats_; ++s) {
      const auto next = new_label();
      wake_owner(s, next);
      mark(next);
    }
  }

  // -- searching --

  void begin_search(std::size_t s) {
    const auto behind = new_label();
    step("begin to search", kind::release, of(seat, s),
         [=, jump = jump_, wrong = wrong_](access& a) {
           for (auto dead : {job, word, look})
             a.local(dead) = 0;
           auto& w = a.shared(of(seat, s));
           const auto before = w;
           w = static_cast<value>(w | searching);
           if (before & searching)
             jump(a, behind);
         });
    count(searchers, 1);
    mark(behind);
  }
  void end_search(std::size_t s) {
    const auto behind = new_label(), not_last = new_label(),
               look_around = new_label(), found = new_label();
    step("end the search", kind::release, of(seat, s),
         [=, jump = jump_, wrong = wrong_](access& a) {
           auto& w = a.shared(of(seat, s));
           const auto before = w;
           w = static_cast<value>(w & ~(searching | claimed));
           a.local(look) = (before & claimed) != 0;
           if (!(before & (searching | claimed)))
             jump(a, behind);
           else if (!(before & searching))
             jump(a, look_around);
         });
    step("count", kind::change, searchers,
         [=, jump = jump_, wrong = wrong_](access& a) {
           if (--a.shared(searchers) <= 0 && !wrong.no_last_look)
             a.local(look) = 1;
         });
    mark(look_around);
    fence("as F2");
    step("was it the last?", kind::local, 0,
         [=, jump = jump_, wrong = wrong_](access& a) {
           if (!std::exchange(a.local(look), value{0}))
             jump(a, not_last);
         });
    for (std::size_t l = 0; l < seats_; ++l)
      step("is there a job?", kind::plain, 0,
           [=, jump = jump_, wrong = wrong_](access& a) {
             if (a.load(of(lists, l)) != 0)
               jump(a, found);
           });
    step("no", kind::local, 0,
         [=, jump = jump_, wrong = wrong_](access& a) { jump(a, not_last); });
    mark(found);
    wake_if_nobody_searches();
    mark(not_last);
    if (!wrong_.ignores_guests) {
      step("is there a guest?", kind::plain, 0,
           [=, jump = jump_, wrong = wrong_](access& a) {
             if (a.load(guests) == 0)
               jump(a, behind);
           });
      wake_owner_if_none_searches();
    }
    mark(behind);
  }
  /// `push` by the server of seat `s`, whose jobs are long.
  void push(std::size_t s, int which) {
    const auto own = new_label(), behind = new_label();
    step("does someone search?", kind::plain, 0,
         [=, jump = jump_, wrong = wrong_](access& a) {
           if (a.load(searchers) <= 0)
             jump(a, own);
         });
    for (std::size_t to = 0; to < seats_; ++to) {
      const auto next = new_label();
      step("claim", kind::release, of(seat, to),
           [=, jump = jump_, wrong = wrong_](access& a) {
             auto& w = a.shared(of(seat, to));
             if (!(w & searching))
               return jump(a, next);
             w = static_cast<value>((w | claimed) & ~searching);
           });
      count(searchers, -1);
      add(to, which);
      fence("F1");
      step("is it still claimed?", kind::plain, 0,
           [=, jump = jump_, wrong = wrong_](access& a) {
             if (wrong.gives_blindly || a.load(of(seat, to)) & claimed)
               jump(a, behind);
           });
      wake_if_nobody_searches();
      step("given", kind::local, 0,
           [=, jump = jump_, wrong = wrong_](access& a) { jump(a, behind); });
      mark(next);
    }
    mark(own);
    push_to(s, which);
    mark(behind);
  }

  // -- sleeping --

  /// @param reasons variables of which none may be set
  void sleep(std::size_t s, value bit, const std::vector<variable>& reasons,
             label awake) {
    const auto not_searching = new_label(), counted = new_label(),
               wait = new_label();
    const auto look_around = [&] {
      for (auto v : reasons)
        step("reason to stay?", kind::plain, 0,
             [=, jump = jump_, wrong = wrong_](access& a) {
               if (a.load(v) != 0)
                 a.local(look) = 1;
             });
    };
    if (wrong_.looks_before_sleeping) {
      forget_look();
      look_around();
    }
    step("fall asleep", kind::release, of(seat, s),
         [=, jump = jump_, wrong = wrong_](access& a) {
           auto& w = a.shared(of(seat, s));
           if ((w & claimed) && !wrong.sleeps_though_claimed)
             return jump(a, awake);
           const auto before = w;
           w = static_cast<value>(w & ~(bit | searching));
           if (!(before & searching))
             jump(a, not_searching);
         });
    count(searchers, -1);
    mark(not_searching);
    count(sleepers, 1);
    if (!wrong_.looks_before_sleeping) {
      fence("F2");
      forget_look();
      look_around();
    }
    step("stay?", kind::local, 0, [=, jump = jump_, wrong = wrong_](access& a) {
      if (!std::exchange(a.local(look), value{0}))
        jump(a, wait);
    });
    step("take it back", kind::release, of(seat, s),
         [=, jump = jump_](access& a) {
           auto& w = a.shared(of(seat, s));
           const auto before = w;
           w = static_cast<value>(w | bit);
           if ((before & bit) || (bit == up && (before & lent)))
             jump(a, counted);
         });
    count(sleepers, -1);
    mark(counted);
    if (bit == up && !wrong_.keeps_lent_seats_job)
      hand_on(s);
    go_to(awake);
    mark(wait);
    asleep_ = static_cast<std::uint8_t>(code_.size());
    step(
      "sleep", kind::plain, 0,
      [=, jump = jump_, wrong = wrong_](access& a) { jump(a, awake); },
      [=](access& a) { return (a.load(of(seat, s)) & bit) != 0; });
  }
  /// The owner of a seat that is lent has seen a job, which is not its affair.
  void hand_on(std::size_t s) {
    const auto found = new_label(), behind = new_label();
    branch(
      "not lent?", [=](access& a) { return !(a.load(of(seat, s)) & lent); },
      behind);
    for (std::size_t l = 0; l < seats_; ++l)
      branch(
        "is there a job?", [=](access& a) { return a.load(of(lists, l)) != 0; },
        found);
    go_to(behind);
    mark(found);
    wake_if_nobody_searches();
    mark(behind);
  }
  void sleep_beside_borrower(std::size_t s, label awake) {
    const auto wait = new_label(), rise = new_label();
    step("sleep beside", kind::release, of(seat, s),
         [=, jump = jump_, wrong = wrong_](access& a) {
           auto& w = a.shared(of(seat, s));
           if (!(w & lent))
             return jump(a, awake);
           w = static_cast<value>(w & ~up);
         });
    fence("F2");
    step("a guest?", kind::plain, 0,
         [=, jump = jump_, wrong = wrong_](access& a) {
           if (a.load(guests) != 0)
             jump(a, rise);
         });
    step("stopped?", kind::plain, 0,
         [=, jump = jump_, wrong = wrong_](access& a) {
           if (a.load(stopped) == 0)
             jump(a, wait);
         });
    mark(rise);
    wake_owner(s, awake);
    mark(wait);
    step(
      "sleep", kind::plain, 0,
      [=, jump = jump_, wrong = wrong_](access& a) { jump(a, awake); },
      [=](access& a) { return (a.load(of(seat, s)) & up) != 0; });
  }
  void count(variable v, int change) {
    step("count", kind::change, v, [=](access& a) {
      a.shared(v) = static_cast<value>(a.shared(v) + change);
    });
  }

  // -- borrowing --

  void borrow(std::size_t s, label taken) {
    step("borrow", kind::release, of(seat, s),
         [=, jump = jump_, wrong = wrong_](access& a) {
           auto& w = a.shared(of(seat, s));
           a.local(word) = w;
           if (w & (lent | up))
             return jump(a, taken);
           w = static_cast<value>(w | lent | borrower_up | searching);
         });
    count(searchers, 1);
    const auto absent = new_label();
    step("was an owner there?", kind::local, 0,
         [=, jump = jump_, wrong = wrong_](access& a) {
           if (!(a.local(word) & present))
             jump(a, absent);
         });
    count(sleepers, -1);
    mark(absent);
  }
  void give_back(std::size_t s) {
    const auto not_searching = new_label(), no_owner = new_label(),
               found = new_label(), behind = new_label();
    step("give back", kind::release, of(seat, s),
         [=, jump = jump_, wrong = wrong_](access& a) {
           auto& w = a.shared(of(seat, s));
           a.local(word) = w;
           w = static_cast<value>(
             w & ~(lent | borrower_up | searching | claimed));
           if (!(a.local(word) & searching))
             jump(a, not_searching);
         });
    count(searchers, -1);
    mark(not_searching);
    step("does the owner sleep?", kind::local, 0,
         [=, jump = jump_, wrong = wrong_](access& a) {
           if ((a.local(word) & (present | up)) != present
               || wrong.back_without_count)
             jump(a, no_owner);
         });
    count(sleepers, 1);
    mark(no_owner);
    fence("F2");
    for (std::size_t l = 0; l < seats_; ++l)
      step("is there a job?", kind::plain, 0,
           [=, jump = jump_, wrong = wrong_](access& a) {
             if (a.load(of(lists, l)) != 0 && !wrong.leaves_blindly)
               jump(a, found);
           });
    step("no", kind::local, 0,
         [=, jump = jump_, wrong = wrong_](access& a) { jump(a, behind); });
    mark(found);
    wake_if_nobody_searches();
    mark(behind);
  }
  /// What an idle worker looks at last: the lists and `more`.
  std::vector<variable> reasons_to_stay(std::vector<variable> more) const {
    for (std::size_t l = 0; l < seats_; ++l)
      more.push_back(of(lists, l));
    return more;
  }
  template <class Condition>
  void branch(const char* name, Condition holds, label to,
              kind what = kind::plain) {
    step(name, what, 0, [=, jump = jump_](access& a) {
      if (holds(a))
        jump(a, to);
    });
  }
  void go_to(label to) {
    step("go on", kind::local, 0,
         [=, jump = jump_, wrong = wrong_](access& a) { jump(a, to); });
  }

private:
  void lock(variable flag) {
    step(
      "take a flag", kind::change, flag, [=](access& a) { a.shared(flag) = 1; },
      [=](access& a) { return a.shared(flag) == 0; });
  }
  void forget_look() {
    step("look", kind::local, 0, [](access& a) { a.local(look) = 0; });
  }

  std::size_t seats_;
  mistakes wrong_;
  program code_;
  std::size_t labels_ = 0;
  std::uint8_t asleep_ = 0;
  jumper jump_;
};

/// What the threads of a test are and do.
struct setting {
  std::size_t seats = 1;
  std::size_t asleep = 0; ///< the first owners begin asleep
  bool borrowed = false;  ///< seat 0 may be lent
  bool with_guests = false;
  bool with_stop = false;
  int pushes_more = -1;     ///< this job pushes job 2
  int ends = -1;            ///< this job is what the borrower waits for
  int waits_for = -1;       ///< job 0 ends when this job has run
  bool guests_meet = false; ///< guest 0 waits for guest 1
  mistakes wrong = {};
};

/// What a job does; local `job` says which.
void run_job(writer& w, const setting& t, std::size_t s) {
  w.step("run", kind::release, runs, [](access& a) {
    ++a.shared(of(runs, static_cast<std::size_t>(a.local(job))));
  });
  const auto only = [&](int which, auto act) {
    if (which < 0)
      return;
    const auto behind = w.new_label();
    w.branch(
      "which job?", [which](access& a) { return a.local(job) != which; },
      behind, kind::local);
    act();
    w.mark(behind);
  };
  only(t.pushes_more, [&] { w.push(s, 2); });
  if (t.waits_for >= 0)
    w.step(
      "wait for another job", kind::plain, 0, [](access&) {},
      [v = of(runs, static_cast<std::size_t>(t.waits_for))](access& a) {
        return a.local(job) != 0 || a.load(v) != 0;
      });
  only(t.ends, [&] { w.tell_end(); });
}

void run_guest(writer& w, const setting& t) {
  if (t.guests_meet)
    w.step(
      "meet the other guest", kind::plain, 0, [](access&) {},
      [](access& a) { return a.local(job) != 0 || a.load(guest_runs); });
  w.step("run the guest", kind::release, guest_runs, [](access& a) {
    a.shared(guest_runs) =
      static_cast<value>(a.shared(guest_runs) | 1 << a.local(job));
  });
}

/// Looks everywhere; a job leads to `found`, a guest to `guest`.
void look_everywhere(writer& w, const setting& t, std::size_t s, bool owner,
                     writer::label found, writer::label guest) {
  for (std::size_t i = 0; i < t.seats; ++i) {
    const auto next = w.new_label();
    const auto l = (s + i) % t.seats;
    w.take(of(lists, l), of(flags, l), next);
    w.go_to(found);
    w.mark(next);
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
  writer w{t.seats, t.wrong};
  const auto top = w.new_label(), found = w.new_label(), guest = w.new_label(),
             beside = w.new_label(), leave = w.new_label();
  w.mark(top);
  if (t.borrowed && s == 0)
    w.branch(
      "is the seat lent?", [](access& a) { return (a.load(seat) & lent) != 0; },
      beside);
  w.begin_search(s);
  look_everywhere(w, t, s, true, found, guest);
  if (t.with_stop) {
    const auto stays = w.new_label();
    w.branch(
      "stopped?", [](access& a) { return a.load(stopped) == 0; }, stays);
    for (std::size_t l = 0; l < t.seats; ++l)
      w.branch(
        "no jobs?", [l](access& a) { return a.load(of(lists, l)) != 0; },
        stays);
    w.end_search(s);
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
      run_guest(w, t);
      w.go_to(top);
      w.mark(none);
    }
    w.branch(
      "stopped?", [](access& a) { return a.load(stopped) != 0; }, leave);
    w.sleep_beside_borrower(s, top);
  }
  w.mark(leave);
  w.step("leave", kind::release, of(seat, s), [s](access& a) {
    auto& word_ = a.shared(of(seat, s));
    word_ = static_cast<value>(word_ & ~(present | up));
  });
  const auto asleep = w.asleep();
  return {w.finish(), asleep};
}

/// A thread that waits for a job's end in seat 0, if it can have it.
program borrower(const setting& t) {
  writer w{t.seats, t.wrong};
  const auto top = w.new_label(), found = w.new_label(), leave = w.new_label(),
             taken = w.new_label(), end = w.new_label();
  w.borrow(0, taken);
  w.mark(top);
  w.branch(
    "is it done?", [](access& a) { return a.load(done) != 0; }, leave);
  w.begin_search(0);
  look_everywhere(w, t, 0, false, found, found);
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
    "wait without a seat", kind::plain, 0, [](access&) {},
    [](access& a) { return a.load(done) != 0; });
  w.mark(end);
  w.step("end", kind::local, 0, [](access&) {});
  return w.finish();
}

/// A thread outside: job j goes to the list of worker j modulo seats.
program pusher(const setting& t, std::initializer_list<int> jobs,
               std::initializer_list<int> pushed_guests = {}) {
  writer w{t.seats, t.wrong};
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
  m.always = no_double_run;
  m.at_end = [=, count = m.threads.size()](const state& s) -> std::string {
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
  writer w{t.seats, t.wrong};
  w.push_to(1, 0);
  w.tell_end();
  return run(t, rules, {w.finish(), borrower(t)}, 0b101);
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

/// Two guests of which the first waits for the second.
outcome guests_that_meet(const mistakes& wrong, memory rules) {
  const setting t{.seats = 2,
                  .asleep = 1,
                  .with_guests = true,
                  .guests_meet = true,
                  .wrong = wrong};
  return run(t, rules, {pusher(t, {}, {0, 1})}, 0, 3);
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

TEST_SUITE("model.parking") {

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

TEST_CASE("no job is lost between a borrower and the owner of its seat") {
  check_all_rules([](memory m) { return borrowed({}, m); });
}

TEST_CASE("guests wake owners, whoever serves") {
  check_all_rules([](memory m) { return guests_that_meet({}, m); });
  check_all_rules([](memory m) { return borrowed_beside_guest({}, m); });
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
  CHECK(given({.sleeps_though_claimed = true}, plain).failure != "");
  CHECK(given_to_borrower({.gives_blindly = true}, plain).failure != "");
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
}

} // TEST_SUITE("model.parking")
