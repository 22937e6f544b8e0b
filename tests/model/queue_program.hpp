// SPDX-License-Identifier: Apache-2.0
//
// What threads do with a job_queue, as programs for the machine: seats with
// owner and borrower, searchers and sleepers, claims, guests, stop. They follow
// job_queue.cpp; change both together. Left out: the foreign list, which is a
// list as any other, and whom wake_one prefers.
#pragma once

#include "model/machine.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

namespace troupe::model::queue {

using kind = instruction::kind;

constexpr std::size_t most_seats = 2;
constexpr std::size_t job_count = 3;

enum shared : variable {
  seat, ///< seat + number: its word
  searchers = seat + most_seats,
  sleepers,
  stopped,
  done,                        ///< what a borrower waits for
  slots,                       ///< slots + number: `slot_content`
  lists = slots + most_seats,  ///< lists + number: a bit per job
  guests = lists + most_seats, ///< the list of guests, a bit each
  flags,                       ///< flags + number: a list's spin flag
  guest_flag = flags + most_seats,
  runs,                          ///< test: how often a job has run
  guest_runs = runs + job_count, ///< test: guests that have run
  stand_in,                      ///< 1 while the stand-in sleeps
};

/// Bits of a seat's word, as in worker_seat.
enum bits : value {
  present = 1,
  up = 2,
  lent = 4,
  borrower_up = 8,
  searching = 16,
};

/// What a seat's slot has in it; a job is `first_job` and its number.
enum slot_content : value { closed, open, first_job };

/// What a mistake leaves out or does wrongly.
struct mistakes {
  bool no_fence_in_push = false;      ///< F1
  bool looks_before_sleeping = false; ///< without F2 the look may come early
  bool no_last_look = false;          ///< a search ends without one
  bool leaves_blindly = false;        ///< give_back() without a look
  bool wakes_once = false;            ///< wake() does not try again
  bool ignores_guests = false;        ///< no look for guests at a search's end
  bool leaves_slot_open = false;      ///< when it has found another job
  bool sleeps_beside_slot = false;    ///< without closing it
  bool drops_given = false;           ///< closes the slot without a look
  bool no_fence_in_wake_borrowers = false;
  bool trusts_sleepers = false;      ///< in wake_borrowers
  bool wakes_without_count = false;  ///< wake() leaves `sleepers`
  bool keeps_lent_seats_job = false; ///< an owner that wakes beside a borrower
  bool back_without_count = false;   ///< give_back() forgets the owner
  bool stays_without_search = false; ///< does not sleep, but no longer searches
  bool keeps_guests =
    false; ///< an owner beside a borrower, which has taken one
  bool forgets_stand_in = false;        ///< who pushes a guest
  bool stand_in_sleeps_blindly = false; ///< without a look
  bool no_fence_before_stand_in_sleeps = false;
};

constexpr variable of(variable first, std::size_t number) {
  return static_cast<variable>(first + number);
}

/// Nobody serves the seat, and there is who can be woken to.
constexpr bool server_sleeps(value w) {
  return (w & lent) ? !(w & borrower_up) : (w & (present | up)) == present;
}

/// Registers of a thread.
enum local : std::size_t { job, word, look, kept };

/// Writes the program of one thread, an operation behind the other. An
/// operation that ends at a label of the caller's falls through otherwise.
class queue_program {
public:
  queue_program(std::size_t seats, const mistakes& wrong,
                bool has_stand_in = false)
    : seats_(seats), wrong_(wrong), has_stand_in_(has_stand_in) {}

  using label = std::size_t;
  label new_label() { return labels_++; }
  void mark(label l) {
    (*places_)[l] = static_cast<std::uint8_t>(code_.size());
  }
  /// The program; its steps do not refer to this object.
  program finish() { return std::move(code_); }
  /// The step at which the thread sleeps.
  std::uint8_t asleep() const { return asleep_; }

  // -- steps ------------------------------------------------------------------

  void step(const char* name, kind what, variable of,
            std::function<void(memory_access&)> act,
            std::function<bool(memory_access&)> can = {});
  void branch(const char* name, std::function<bool(memory_access&)> holds,
              label to, kind what = kind::plain);
  void go_to(label to);

  // -- operations of job_queue
  // --------------------------------------------------

  void push_to(std::size_t home, int which);
  /// Another thread gives a job, which ends at `given`.
  void give(std::size_t s, int which, label given);
  /// The job that the server of `s` was given, to local `job`; else `none`.
  void poll_slot(std::size_t s, label none);
  /// The same by a thief.
  void steal_from_slot(std::size_t s, label none);
  /// By the server of seat `s`, whose jobs are long.
  void push(std::size_t s, int which);
  void push_guest(int which);
  /// To local `job`, else goes to `none`.
  void take(variable list, variable flag, label none);
  void begin_search(std::size_t s);
  void end_search(std::size_t s);
  /// By an owner that has looked for guests.
  void pass_guests_on();
  /// Goes to `awake` when it wakes, or if one of `reasons` is not 0.
  void sleep(std::size_t s, value bit, const std::vector<variable>& reasons,
             label awake);
  void sleep_beside_borrower(std::size_t s, label awake);
  void sleep_as_stand_in(label awake);
  /// Goes to `taken` if the seat cannot be had.
  void borrow(std::size_t s, label taken);
  void give_back(std::size_t s);
  /// Sets `done` and wakes who waits for it.
  void tell_end();
  void stop();

  /// What an idle worker looks at last: the lists and `more`.
  std::vector<variable> reasons_to_stay(std::vector<variable> more) const;

private:
  // Goes to labels, whose places are known when the program is whole.
  struct jumper {
    void operator()(memory_access& a, label to) const {
      a.go_to((*places)[to]);
    }
    std::shared_ptr<const std::array<std::uint8_t, 256>> places;
  };
  // The bits that a waker sets in a seat's word; 0: none.
  using bits_to_set = value (*)(value word);

  void add(std::size_t list, int which);
  void after_push();
  // All that wake end at `woken` when they have woken somebody.
  void wake_by(std::size_t s, bits_to_set to_set, label woken);
  void wake(std::size_t s, label woken);
  void wake_owner(std::size_t s, label woken);
  void wake_if_nobody_searches();
  void wake_owner_if_none_searches();
  void wake_stand_in();
  void wake_borrowers();
  // The owner of a seat that is lent has seen a job, which is not its affair.
  void hand_on(std::size_t s);
  void count(variable v, int change);
  void close_slot(std::size_t s);
  void look_once_more();
  void fence(const char* name);
  void lock(variable flag);
  void forget_look();

  std::size_t seats_;
  mistakes wrong_;
  bool has_stand_in_;
  program code_;
  std::size_t labels_ = 0;
  std::uint8_t asleep_ = 0;
  std::shared_ptr<std::array<std::uint8_t, 256>> places_ =
    std::make_shared<std::array<std::uint8_t, 256>>();
  jumper jump_{places_};
};

} // namespace troupe::model::queue
