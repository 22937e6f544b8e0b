// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/base/clock.hpp>
#include <troupe/base/cores.hpp>
#include <troupe/base/job_queue.hpp>
#include <troupe/base/ready_list.hpp>
#include <troupe/base/spin.hpp>
#include <troupe/base/worker_place.hpp>
#include <troupe/base/worker_seat.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace troupe {

/// The implementation of a queue: places, waking, searching and sleeping.
///
/// Sleeping without lost wake-ups.
///
///   push:  add to a list; fence F1; if nobody searches, wake a sleeper
///   sleep: give up the search, say "asleep"; fence F2; if a list is not
///          empty, or what else it waits for has come, take both back and look
///          again; else sleep until someone sets the bit
///
/// F1 and F2 are sequentially consistent. If F1 comes first in their order, the
/// sleeper's look sees the job. If F2 comes first, the pusher sees that nobody
/// searches, and sees the sleeper.
///
/// A pusher can rely on a searcher to find its job. If the last searcher finds
/// something else, it looks once more, after a fence, for jobs that are left
/// behind, and wakes a sleeper for them. Guests need an owner, so each owner
/// that ends its search looks for them. If no owner searches or sleeps, the
/// stand-in is woken, which falls asleep by the same rule.
struct job_queue::state {
  /// How long an idle worker searches for jobs before it sleeps.
  static constexpr std::uint64_t search_ns = 50'000;
  static constexpr int most_near_looks = 256;

  explicit state(std::size_t workers)
    : places(workers), may_spin(workers <= usable_cores()) {}

  std::vector<worker_place> places;
  ready_list<job> foreign;
  std::atomic<std::uint64_t> foreign_pushes{0}; // relaxed: only a statistic
  ready_list<void> guests;
  bool may_spin;
  std::atomic<bool> shares_short_jobs{false}; // relaxed: a hint
  alignas(64) std::atomic<int> searchers{0};
  std::atomic<int> sleepers{0}; // number of servers that can be woken
  /// What searching workers look at, and how many of them do. All accesses are
  /// seq_cst: either a worker sees that it is detached, or `detach` sees the
  /// worker.
  alignas(64) std::atomic<outside_work*> outside{nullptr};
  std::atomic<int> outside_users{0};
  std::atomic<bool> stopped{false};
  /// True while the stand-in sleeps, or is about to. Set by the stand-in,
  /// cleared (acq_rel) by who wakes it.
  alignas(64) std::atomic<bool> stand_in_sleeps{false};

  bool others_wait() const noexcept {
    return !foreign.empty() || !guests.empty();
  }

  bool any_job() const noexcept {
    return !foreign.empty()
           || std::any_of(places.begin(), places.end(),
                          [](auto& p) { return !p.jobs.empty(); });
  }

  // -- waking -----------------------------------------------------------------

  /// Sets the bits that `to_set(word)` returns and notifies the thread that
  /// sleeps on them. Returns false if it returns no bits. Retries if the word
  /// changes meanwhile, because a change by the seat's other thread does not
  /// matter.
  template <class ToSet>
  bool wake_by(worker_place& p, ToSet to_set) noexcept {
    for (;;) {
      const auto w = p.seat.now();
      const std::uint32_t bits = to_set(w);
      if (bits == 0)
        return false;
      std::uint32_t before = 0;
      if (!p.seat.change(bits, 0, before,
                         [w](std::uint32_t now) { return now == w; }))
        continue;
      if (bits & worker_seat::searching) {
        sleepers.fetch_sub(1, std::memory_order_relaxed);
        searchers.fetch_add(1, std::memory_order_relaxed);
      }
      p.seat.notify();
      return true;
    }
  }

  /// Wakes the server, which then starts to search.
  bool wake(worker_place& p) noexcept {
    return wake_by(p, [](std::uint32_t w) -> std::uint32_t {
      if (!worker_seat::server_sleeps(w))
        return 0;
      return worker_seat::searching
             | ((w & worker_seat::lent) ? worker_seat::borrower_up
                                        : worker_seat::up);
    });
  }

  /// Wakes the owner, which then starts to search unless its seat is lent.
  bool wake_owner(worker_place& p) noexcept {
    return wake_by(p, [](std::uint32_t w) -> std::uint32_t {
      if ((w & (worker_seat::present | worker_seat::up))
          != worker_seat::present)
        return 0;
      return (w & worker_seat::lent) ? worker_seat::up
                                     : worker_seat::up | worker_seat::searching;
    });
  }

  /// Wakes a sleeper, preferably one with jobs of its own. The worker of the
  /// caller's core is the last choice, because it would have to wait for the
  /// caller.
  void wake_one() noexcept {
    for (auto& p : places)
      if (!p.jobs.empty() && wake(p))
        return;
    const auto next = current_core() + 1;
    for (std::size_t step = 0; step < places.size(); ++step)
      if (wake(places[(next + step) % places.size()]))
        return;
  }

  void after_push() noexcept {
    std::atomic_thread_fence(std::memory_order_seq_cst); // F1
    wake_if_nobody_searches();
  }

  bool all_sleep_or_work() const noexcept {
    return searchers.load(std::memory_order_relaxed) <= 0
           && sleepers.load(std::memory_order_relaxed) > 0;
  }
  void wake_if_nobody_searches() noexcept {
    if (all_sleep_or_work())
      wake_one();
  }
  /// Called after a fence by a searcher on which a pusher may have relied.
  void look_once_more() noexcept {
    if (all_sleep_or_work() && any_job())
      wake_one();
  }

  /// A guest needs an owner, not a borrower; or the stand-in.
  void wake_owner_if_none_searches() noexcept {
    constexpr auto looking =
      worker_seat::present | worker_seat::up | worker_seat::searching;
    for (auto& p : places)
      if ((p.seat.now() & (looking | worker_seat::lent)) == looking)
        return;
    for (auto& p : places)
      if (wake_owner(p))
        return;
    wake_stand_in();
  }

  void wake_stand_in() noexcept {
    if (stand_in_sleeps.load(std::memory_order_relaxed)
        && stand_in_sleeps.exchange(false, std::memory_order_acq_rel))
      stand_in_sleeps.notify_one();
  }

  /// Called by who has looked for guests: pushers may have relied on it for
  /// more than the one that it takes.
  void pass_guests_on() noexcept {
    if (!guests.empty())
      wake_owner_if_none_searches();
  }

  // -- searching --------------------------------------------------------------

  /// A worker that looks at what is attached, if anything is.
  class outside_look {
  public:
    explicit outside_look(state& of) noexcept : of_(of) {
      if (!of_.outside.load(std::memory_order_relaxed))
        return;
      of_.outside_users.fetch_add(1);
      at_ = of_.outside.load();
      if (at_)
        at_->begin_looking();
      else
        of_.outside_users.fetch_sub(1);
    }
    ~outside_look() {
      if (!at_)
        return;
      at_->end_looking();
      of_.outside_users.fetch_sub(1);
    }
    outside_look(const outside_look&) = delete;
    outside_look& operator=(const outside_look&) = delete;

    void look() noexcept {
      if (at_)
        at_->look();
    }

  private:
    state& of_;
    outside_work* at_ = nullptr;
  };

  void begin_search(worker_place& p) noexcept {
    if (!(p.seat.change(worker_seat::searching, 0) & worker_seat::searching))
      searchers.fetch_add(1, std::memory_order_relaxed);
  }

  /// Called when the server has found work or stops searching.
  void end_search(worker_place& p) noexcept {
    if (!p.seat.is(worker_seat::searching))
      return;
    close_slot(p);
    p.seat.change(0, worker_seat::searching);
    const auto last = searchers.fetch_sub(1, std::memory_order_relaxed) <= 1;
    std::atomic_thread_fence(std::memory_order_seq_cst); // as F2
    if (last)
      look_once_more();
    pass_guests_on();
  }

  void close_slot(worker_place& p) noexcept {
    if (auto* j = p.slot.close())
      p.jobs.push(*j, job_priority::high);
  }

  /// Gives `j` to a searching worker.
  bool give(worker_place& from, std::size_t index, job& j) noexcept {
    auto& partner = places[from.partner];
    // No check first: the cache line then moves only once.
    if (&partner != &from && partner.slot.give(j))
      return true;
    if (searchers.load(std::memory_order_relaxed) <= 0)
      return false;
    for (std::size_t step = 1; step < places.size(); ++step) {
      const auto to = (index + step) % places.size();
      if (places[to].seat.is(worker_seat::searching)
          && places[to].slot.give(j)) {
        from.partner = static_cast<std::uint32_t>(to);
        return true;
      }
    }
    return false;
  }

  /// Takes work that is meant for worker `index`. Guests that a guest has
  /// called for run next, here: what they answer would otherwise wait for a job
  /// of this worker. After `most_guests_in_row` of them, it is the turn of all.
  found_work look_near(std::size_t index, bool with_guests) noexcept {
    auto& p = places[index];
    found_work found;
    if (with_guests && p.guests_in_row % most_guests_in_row != 0)
      found.guest = guests.take_oldest();
    if (!found)
      found = look_in_turn(p, with_guests);
    p.guests_in_row = found.guest ? p.guests_in_row + 1 : 0;
    return found;
  }
  static constexpr std::uint32_t most_guests_in_row = 8;

  found_work look_in_turn(worker_place& p, bool with_guests) noexcept {
    const auto look = ++p.looks;
    if (look % 2 != 0)
      if (auto* j = p.take_own())
        return {j};
    if (look % 4 == 0) // guests may never end
      if (auto* j = foreign.take_oldest())
        return {j};
    if (with_guests)
      if (auto* g = guests.take_oldest())
        return {nullptr, g};
    if (auto* j = foreign.take_oldest())
      return {j};
    return {p.take_own()};
  }

  /// The result of `take(victim)` for the first other worker where it succeeds.
  template <class Take>
  job* steal(std::size_t index, Take take) noexcept {
    for (std::size_t step = 1; step < places.size(); ++step)
      if (auto* j = take(places[(index + step) % places.size()]))
        return j;
    return nullptr;
  }

  /// Takes a job that the other worker will not reach soon, or any job if short
  /// jobs are shared.
  job* take_late_job(worker_place& victim, place_watch& watched,
                     std::uint64_t now) noexcept {
    const auto comes_soon =
      may_spin && !shares_short_jobs.load(std::memory_order_relaxed)
      && victim.has_short_jobs()
      && !worker_seat::server_sleeps(victim.seat.now());
    if (comes_soon && !watched.is_stuck(victim, now))
      return nullptr; // avoids reading lists that the victim is about to change
    if (comes_soon)
      victim.was_stuck();
    return victim.take_for_other();
  }

  /// Searches everywhere for `search_ns`. Returns nothing once `give_up()`
  /// holds, which is checked after each look.
  template <class GiveUp>
  found_work search(std::size_t index, bool with_guests,
                    GiveUp give_up) noexcept {
    const auto until = now_ns() + (may_spin ? search_ns : 0);
    auto& slot = places[index].slot;
    slot.open();
    outside_look elsewhere{*this};
    place_watch watched;
    for (int near_looks = 16;;
         near_looks = std::min(2 * near_looks, most_near_looks)) {
      for (int look = 0; look < near_looks; ++look) {
        if (auto* j = slot.poll())
          return {j};
        if (auto found = look_near(index, with_guests))
          return found;
        if (give_up())
          return {};
        elsewhere.look();
        relax();
      }
      const auto now = now_ns();
      if (auto* j = steal(index, [&](worker_place& victim) {
            return take_late_job(victim, watched, now);
          }))
        return {j};
      if (now >= until)
        return {};
    }
  }

  // -- sleeping ---------------------------------------------------------------

  /// Takes back that the server sleeps, and that its search is over: a pusher
  /// may have relied on it for more than it finds first.
  void stay_awake(worker_place& p, std::uint32_t bit) noexcept {
    if (bit != worker_seat::up) {
      wake(p);
      return;
    }
    wake_owner(p);
    // An owner whose seat has been lent meanwhile takes no jobs.
    if (p.seat.is(worker_seat::lent))
      look_once_more();
  }

  /// Ends a search by sleeping until `bit` is set, unless `reason_to_stay()`
  /// holds after the fence.
  template <class Reason>
  void sleep(worker_place& p, std::uint32_t bit,
             Reason reason_to_stay) noexcept {
    close_slot(p);
    const auto before = p.seat.change(0, bit | worker_seat::searching);
    if (before & worker_seat::searching)
      searchers.fetch_sub(1, std::memory_order_relaxed);
    sleepers.fetch_add(1, std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_seq_cst); // F2
    if (reason_to_stay()) {
      stay_awake(p, bit);
      return;
    }
    p.seat.sleep_until(bit);
  }

  /// The stand-in has no guest to run.
  void sleep_as_stand_in() noexcept {
    stand_in_sleeps.store(true, std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_seq_cst); // F2
    if (!guests.empty() || stopped.load(std::memory_order_relaxed))
      stand_in_sleeps.store(false, std::memory_order_relaxed);
    else
      stand_in_sleeps.wait(true, std::memory_order_acquire);
  }

  /// The owner of a lent seat has no guest to run.
  void sleep_beside_borrower(worker_place& p) noexcept {
    std::uint32_t before = 0;
    if (!p.seat.change(0, worker_seat::up, before, [](std::uint32_t w) {
          return (w & worker_seat::lent) != 0;
        }))
      return;
    std::atomic_thread_fence(std::memory_order_seq_cst); // F2
    if ((!guests.empty() || stopped.load(std::memory_order_relaxed))
        && wake_owner(p))
      return;
    p.seat.sleep_until(worker_seat::up);
  }
};

} // namespace troupe
