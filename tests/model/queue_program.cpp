// SPDX-License-Identifier: Apache-2.0
#include "model/queue_program.hpp"

namespace troupe::model::queue {

void queue_program::step(const char* name, kind what, variable of,
                         std::function<void(memory_access&)> act,
                         std::function<bool(memory_access&)> can) {
  code_.push_back({name, what, of, std::move(can), std::move(act)});
}

void queue_program::branch(const char* name,
                           std::function<bool(memory_access&)> holds, label to,
                           kind what) {
  step(name, what, 0, [=, jump = jump_](memory_access& a) {
    if (holds(a))
      jump(a, to);
  });
}

void queue_program::add(std::size_t list, int which) {
  lock(of(flags, list));
  step("add to the list", kind::plain, 0, [=](memory_access& a) {
    const auto l = of(lists, list);
    a.store(l, static_cast<value>(a.load(l) | 1 << which));
    a.store_release(of(flags, list), 0);
  });
}

void queue_program::fence(const char* name) {
  step(name, kind::fence, 0, [](memory_access&) {});
}

void queue_program::after_push() {
  if (!wrong_.no_fence_in_push)
    fence("F1");
  wake_if_nobody_searches();
}

void queue_program::push_to(std::size_t home, int which) {
  const auto given = new_label();
  give(home, which, given);
  add(home, which);
  after_push();
  mark(given);
}

void queue_program::give(std::size_t s, int which, label given) {
  step("give", kind::release, of(slots, s),
       [=, jump = jump_](memory_access& a) {
         auto& content = a.shared(of(slots, s));
         if (content != open)
           return;
         content = static_cast<value>(first_job + which);
         jump(a, given);
       });
}

void queue_program::poll_slot(std::size_t s, label none) {
  step("poll", kind::change, of(slots, s), [=, jump = jump_](memory_access& a) {
    const auto content = std::exchange(a.shared(of(slots, s)), value{open});
    if (content < first_job)
      return jump(a, none);
    a.local(job) = static_cast<value>(content - first_job);
  });
}

void queue_program::steal_from_slot(std::size_t s, label none) {
  step("steal what was given", kind::change, of(slots, s),
       [=, jump = jump_](memory_access& a) {
         auto& content = a.shared(of(slots, s));
         if (content < first_job)
           return jump(a, none);
         a.local(job) = static_cast<value>(content - first_job);
         content = open;
       });
}

void queue_program::close_slot(std::size_t s) {
  const auto nothing = new_label();
  step("close the slot", kind::change, of(slots, s),
       [=, jump = jump_, wrong = wrong_](memory_access& a) {
         const auto content =
           std::exchange(a.shared(of(slots, s)), value{closed});
         if (content < first_job || wrong.drops_given)
           return jump(a, nothing);
         a.local(kept) = static_cast<value>(content - first_job);
       });
  lock(of(flags, s));
  step("keep what was given", kind::plain, 0, [=](memory_access& a) {
    const auto l = of(lists, s);
    a.store(l, static_cast<value>(a.load(l) | 1 << a.local(kept)));
    a.local(kept) = 0;
    a.store_release(of(flags, s), 0);
  });
  mark(nothing);
}

void queue_program::push_guest(int which) {
  lock(guest_flag);
  step("add a guest", kind::plain, 0, [=](memory_access& a) {
    a.store(guests, static_cast<value>(a.load(guests) | 1 << which));
    a.store_release(guest_flag, 0);
  });
  fence("F1");
  wake_owner_if_none_searches();
}

void queue_program::take(variable list, variable flag, label none) {
  branch(
    "look at a list", [=](memory_access& a) { return a.load(list) == 0; },
    none);
  lock(flag);
  step("take", kind::plain, 0, [=, jump = jump_](memory_access& a) {
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

void queue_program::wake_by(std::size_t s, bits_to_set to_set, label woken) {
  const auto again = new_label(), not_this = new_label();
  mark(again);
  step("wake: read the seat", kind::plain, 0,
       [=, jump = jump_](memory_access& a) {
         const auto w = a.load(of(seat, s));
         if (to_set(w) == 0)
           return jump(a, not_this);
         a.local(word) = w;
       });
  step("wake: set bits", kind::release, of(seat, s),
       [=, jump = jump_, wrong = wrong_](memory_access& a) {
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
  step("count", kind::change, searchers, [=, jump = jump_](memory_access& a) {
    ++a.shared(searchers);
    jump(a, woken);
  });
  mark(not_this);
}

void queue_program::wake(std::size_t s, label woken) {
  wake_by(
    s,
    [](value w) -> value {
      if (!server_sleeps(w))
        return 0;
      return static_cast<value>(searching | ((w & lent) ? borrower_up : up));
    },
    woken);
}

void queue_program::wake_owner(std::size_t s, label woken) {
  wake_by(
    s,
    [](value w) -> value {
      if ((w & (present | up)) != present)
        return 0;
      return static_cast<value>((w & lent) ? up : up | searching);
    },
    woken);
}

void queue_program::wake_if_nobody_searches() {
  const auto behind = new_label();
  branch(
    "does someone search?",
    [=](memory_access& a) { return a.load(searchers) > 0; }, behind);
  branch(
    "does someone sleep?",
    [=](memory_access& a) { return a.load(sleepers) <= 0; }, behind);
  for (std::size_t s = 0; s < seats_; ++s)
    wake(s, behind);
  mark(behind);
}

void queue_program::look_once_more() {
  const auto found = new_label(), behind = new_label();
  branch(
    "does someone search?",
    [=](memory_access& a) { return a.load(searchers) > 0; }, behind);
  branch(
    "does someone sleep?",
    [=](memory_access& a) { return a.load(sleepers) <= 0; }, behind);
  for (std::size_t l = 0; l < seats_; ++l)
    branch(
      "is there a job?",
      [=](memory_access& a) { return a.load(of(lists, l)) != 0; }, found);
  go_to(behind);
  mark(found);
  for (std::size_t s = 0; s < seats_; ++s)
    wake(s, behind);
  mark(behind);
}

void queue_program::wake_owner_if_none_searches() {
  const auto behind = new_label();
  for (std::size_t s = 0; s < seats_; ++s)
    step("does an owner search?", kind::plain, 0,
         [=, jump = jump_](memory_access& a) {
           constexpr auto looking = present | up | searching;
           if ((a.load(of(seat, s)) & (looking | lent)) == looking)
             jump(a, behind);
         });
  for (std::size_t s = 0; s < seats_; ++s)
    wake_owner(s, behind);
  if (has_stand_in_ && !wrong_.forgets_stand_in)
    wake_stand_in();
  mark(behind);
}

void queue_program::wake_stand_in() {
  const auto behind = new_label();
  branch(
    "does the stand-in sleep?",
    [](memory_access& a) { return a.load(stand_in) == 0; }, behind);
  step("wake the stand-in", kind::release, stand_in,
       [](memory_access& a) { a.shared(stand_in) = 0; });
  mark(behind);
}

void queue_program::sleep_as_stand_in(label awake) {
  const auto wait = new_label();
  step("the stand-in lies down", kind::plain, 0,
       [](memory_access& a) { a.store(stand_in, 1); });
  if (!wrong_.no_fence_before_stand_in_sleeps)
    fence("F2");
  if (!wrong_.stand_in_sleeps_blindly) {
    branch(
      "no guest?", [](memory_access& a) { return a.load(guests) == 0; }, wait);
    step("the stand-in rises", kind::plain, 0,
         [](memory_access& a) { a.store(stand_in, 0); });
    go_to(awake);
  }
  mark(wait);
  step(
    "sleep", kind::plain, 0,
    [=, jump = jump_](memory_access& a) { jump(a, awake); },
    [](memory_access& a) { return a.load(stand_in) == 0; });
}

void queue_program::wake_borrowers() {
  if (!wrong_.no_fence_in_wake_borrowers)
    fence("F1");
  const auto behind = new_label();
  if (wrong_.trusts_sleepers)
    branch(
      "does someone sleep?",
      [](memory_access& a) { return a.load(sleepers) <= 0; }, behind);
  for (std::size_t s = 0; s < seats_; ++s) {
    const auto next = new_label();
    branch(
      "is it lent?",
      [=](memory_access& a) { return !(a.load(of(seat, s)) & lent); }, next);
    wake(s, next);
    mark(next);
  }
  mark(behind);
}

void queue_program::tell_end() {
  step("done", kind::plain, 0,
       [](memory_access& a) { a.store_release(done, 1); });
  wake_borrowers();
}

void queue_program::stop() {
  step("stop", kind::plain, 0, [](memory_access& a) { a.store(stopped, 1); });
  fence("F1");
  for (std::size_t s = 0; s < seats_; ++s) {
    const auto next = new_label();
    wake_owner(s, next);
    mark(next);
  }
}

void queue_program::begin_search(std::size_t s) {
  const auto behind = new_label();
  step("begin to search", kind::release, of(seat, s),
       [=, jump = jump_](memory_access& a) {
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
  step("open the slot", kind::plain, 0,
       [=](memory_access& a) { a.store(of(slots, s), open); });
}

void queue_program::end_search(std::size_t s) {
  const auto behind = new_label(), not_last = new_label();
  if (!wrong_.leaves_slot_open)
    close_slot(s);
  step("end the search", kind::release, of(seat, s),
       [=, jump = jump_](memory_access& a) {
         auto& w = a.shared(of(seat, s));
         const auto before = w;
         w = static_cast<value>(w & ~searching);
         if (!(before & searching))
           jump(a, behind);
       });
  step("count", kind::change, searchers, [=, wrong = wrong_](memory_access& a) {
    a.local(look) = --a.shared(searchers) <= 0 && !wrong.no_last_look;
  });
  fence("as F2");
  step("was it the last?", kind::local, 0, [=, jump = jump_](memory_access& a) {
    if (!std::exchange(a.local(look), value{0}))
      jump(a, not_last);
  });
  look_once_more();
  mark(not_last);
  if (!wrong_.ignores_guests)
    pass_guests_on();
  mark(behind);
}

void queue_program::pass_guests_on() {
  const auto none = new_label();
  branch(
    "is there a guest?", [=](memory_access& a) { return a.load(guests) == 0; },
    none);
  wake_owner_if_none_searches();
  mark(none);
}

void queue_program::push(std::size_t s, int which) {
  const auto given = new_label();
  for (std::size_t to = 0; to < seats_; ++to)
    if (to != s)
      give(to, which, given);
  add(s, which);
  after_push();
  mark(given);
}

void queue_program::sleep(std::size_t s, value bit,
                          const std::vector<variable>& reasons, label awake) {
  const auto not_searching = new_label(), counted = new_label(),
             wait = new_label();
  const auto look_around = [&] {
    for (auto v : reasons)
      step("reason to stay?", kind::plain, 0, [=](memory_access& a) {
        if (a.load(v) != 0)
          a.local(look) = 1;
      });
  };
  if (wrong_.looks_before_sleeping) {
    forget_look();
    look_around();
  }
  if (!wrong_.sleeps_beside_slot)
    close_slot(s);
  step("fall asleep", kind::release, of(seat, s),
       [=, jump = jump_](memory_access& a) {
         auto& w = a.shared(of(seat, s));
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
  step("stay?", kind::local, 0, [=, jump = jump_](memory_access& a) {
    if (!std::exchange(a.local(look), value{0}))
      jump(a, wait);
  });
  if (wrong_.stays_without_search) {
    step("take back that it sleeps", kind::release, of(seat, s),
         [=, jump = jump_](memory_access& a) {
           auto& w = a.shared(of(seat, s));
           const auto before = w;
           w = static_cast<value>(w | bit);
           if ((before & bit) || (bit == up && (before & lent)))
             jump(a, counted);
         });
    count(sleepers, -1);
  } else if (bit == up) {
    wake_owner(s, counted);
  } else {
    wake(s, counted);
  }
  mark(counted);
  if (bit == up && !wrong_.keeps_lent_seats_job)
    hand_on(s);
  go_to(awake);
  mark(wait);
  asleep_ = static_cast<std::uint8_t>(code_.size());
  step(
    "sleep", kind::plain, 0,
    [=, jump = jump_](memory_access& a) { jump(a, awake); },
    [=](memory_access& a) { return (a.load(of(seat, s)) & bit) != 0; });
}

void queue_program::hand_on(std::size_t s) {
  const auto behind = new_label();
  branch(
    "not lent?",
    [=](memory_access& a) { return !(a.load(of(seat, s)) & lent); }, behind);
  look_once_more();
  mark(behind);
}

void queue_program::sleep_beside_borrower(std::size_t s, label awake) {
  const auto wait = new_label(), rise = new_label();
  step("sleep beside", kind::release, of(seat, s),
       [=, jump = jump_](memory_access& a) {
         auto& w = a.shared(of(seat, s));
         if (!(w & lent))
           return jump(a, awake);
         w = static_cast<value>(w & ~up);
       });
  fence("F2");
  branch(
    "a guest?", [=](memory_access& a) { return a.load(guests) != 0; }, rise);
  branch(
    "stopped?", [=](memory_access& a) { return a.load(stopped) == 0; }, wait);
  mark(rise);
  wake_owner(s, awake);
  mark(wait);
  step(
    "sleep", kind::plain, 0,
    [=, jump = jump_](memory_access& a) { jump(a, awake); },
    [=](memory_access& a) { return (a.load(of(seat, s)) & up) != 0; });
}

void queue_program::count(variable v, int change) {
  step("count", kind::change, v, [=](memory_access& a) {
    a.shared(v) = static_cast<value>(a.shared(v) + change);
  });
}

void queue_program::borrow(std::size_t s, label taken) {
  step("borrow", kind::release, of(seat, s),
       [=, jump = jump_](memory_access& a) {
         auto& w = a.shared(of(seat, s));
         a.local(word) = w;
         if (w & (lent | up))
           return jump(a, taken);
         w = static_cast<value>(w | lent | borrower_up | searching);
       });
  count(searchers, 1);
  const auto absent = new_label();
  branch(
    "was an owner there?",
    [=](memory_access& a) { return !(a.local(word) & present); }, absent,
    kind::local);
  count(sleepers, -1);
  mark(absent);
}

void queue_program::give_back(std::size_t s) {
  const auto not_searching = new_label(), no_owner = new_label();
  step("give back", kind::release, of(seat, s),
       [=, jump = jump_](memory_access& a) {
         auto& w = a.shared(of(seat, s));
         a.local(word) = w;
         w = static_cast<value>(w & ~(lent | borrower_up | searching));
         if (!(a.local(word) & searching))
           jump(a, not_searching);
       });
  count(searchers, -1);
  mark(not_searching);
  step("does the owner sleep?", kind::local, 0,
       [=, jump = jump_, wrong = wrong_](memory_access& a) {
         if ((a.local(word) & (present | up)) != present
             || wrong.back_without_count)
           jump(a, no_owner);
       });
  count(sleepers, 1);
  mark(no_owner);
  fence("F2");
  if (!wrong_.leaves_blindly)
    look_once_more();
}

std::vector<variable>
queue_program::reasons_to_stay(std::vector<variable> more) const {
  for (std::size_t l = 0; l < seats_; ++l)
    more.push_back(of(lists, l));
  return more;
}

void queue_program::go_to(label to) {
  step("go on", kind::local, 0,
       [=, jump = jump_](memory_access& a) { jump(a, to); });
}

void queue_program::lock(variable flag) {
  step(
    "take a flag", kind::change, flag,
    [=](memory_access& a) { a.shared(flag) = 1; },
    [=](memory_access& a) { return a.shared(flag) == 0; });
}

void queue_program::forget_look() {
  step("look", kind::local, 0, [](memory_access& a) { a.local(look) = 0; });
}

} // namespace troupe::model::queue
