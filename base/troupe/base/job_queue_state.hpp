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

/// What a queue consists of: places, who wakes whom, who looks for what.
///
/// Sleeping without lost wake-ups.
///
///   push:  add to a list; fence F1; if nobody searches, wake a sleeper
///   sleep: give up the search, say "asleep"; fence F2; if a list is not
///          empty, or what else it waits for has come, take that back and look
///          again; else sleep until someone sets the bit
///
/// F1 and F2 are sequentially consistent. If F1 comes first in their order, the
/// sleeper's look sees the job; if F2 does, the pusher sees that nobody
/// searches, and the sleeper.
///
/// Who relies on a searcher to find a job can do so: a searcher that finds
/// something else and was the last one looks once more, behind a fence, for
/// jobs that nobody will come for, and wakes a sleeper for them. Guests need an
/// owner: each one that ends its search looks for them.
struct job_queue::state {
  /// How long an idle worker looks for jobs before it sleeps.
  static constexpr std::uint64_t search_ns = 50'000;
  static constexpr int most_near_looks = 256;

  explicit state(std::size_t workers)
    : places(workers), may_spin(workers <= usable_cores()) {}

  std::vector<worker_place> places;
  ready_list<job> foreign;
  std::atomic<std::uint64_t> foreign_pushes{0}; // relaxed: a figure
  ready_list<void> guests;
  bool may_spin;
  alignas(64) std::atomic<int> searchers{0};
  std::atomic<int> sleepers{0}; // servers that can be woken
  std::atomic<bool> stopped{false};

  bool others_wait() const noexcept {
    return !foreign.empty() || !guests.empty();
  }

  bool any_job() const noexcept {
    return !foreign.empty()
           || std::any_of(places.begin(), places.end(),
                          [](auto& p) { return !p.jobs.empty(); });
  }

  // -- waking -----------------------------------------------------------------

  /// Sets the bits that `to_set(word)` names and tells who sleeps on them;
  /// false if it names none. Tries again when the word changes meanwhile: that
  /// the seat's other thread wakes or sleeps is no reason to leave this one.
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

  /// Wakes the server, which then searches.
  bool wake(worker_place& p) noexcept {
    return wake_by(p, [](std::uint32_t w) -> std::uint32_t {
      if (!worker_seat::server_sleeps(w))
        return 0;
      return worker_seat::searching
             | ((w & worker_seat::lent) ? worker_seat::borrower_up
                                        : worker_seat::up);
    });
  }

  /// Wakes the owner, which then searches unless its seat is lent.
  bool wake_owner(worker_place& p) noexcept {
    return wake_by(p, [](std::uint32_t w) -> std::uint32_t {
      if ((w & (worker_seat::present | worker_seat::up))
          != worker_seat::present)
        return 0;
      return (w & worker_seat::lent) ? worker_seat::up
                                     : worker_seat::up | worker_seat::searching;
    });
  }

  /// Wakes a sleeper, best one that has jobs of its own. That of the core which
  /// the caller is on is the last choice: it would wait for the caller.
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
  /// Behind a fence, by who may have been relied on.
  void look_once_more() noexcept {
    if (all_sleep_or_work() && any_job())
      wake_one();
  }

  /// A guest needs an owner, not a borrower.
  void wake_owner_if_none_searches() noexcept {
    constexpr auto looking =
      worker_seat::present | worker_seat::up | worker_seat::searching;
    for (auto& p : places)
      if ((p.seat.now() & (looking | worker_seat::lent)) == looking)
        return;
    for (auto& p : places)
      if (wake_owner(p))
        return;
  }

  // -- searching --------------------------------------------------------------

  void begin_search(worker_place& p) noexcept {
    if (!(p.seat.change(worker_seat::searching, 0) & worker_seat::searching))
      searchers.fetch_add(1, std::memory_order_relaxed);
  }

  /// The server has found something, or does not look any more.
  void end_search(worker_place& p) noexcept {
    if (!p.seat.is(worker_seat::searching))
      return;
    close_slot(p);
    p.seat.change(0, worker_seat::searching);
    const auto last = searchers.fetch_sub(1, std::memory_order_relaxed) <= 1;
    std::atomic_thread_fence(std::memory_order_seq_cst); // as F2
    if (last)
      look_once_more();
    if (!guests.empty())
      wake_owner_if_none_searches();
  }

  void close_slot(worker_place& p) noexcept {
    if (auto* j = p.slot.close())
      p.jobs.push(*j, job_priority::high);
  }

  /// Gives `j` to a worker that looks for a job.
  bool give(worker_place& from, std::size_t index, job& j) noexcept {
    auto& partner = places[from.partner];
    // Not a look first: one way of the cache line instead of two.
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

  /// What is meant for worker `index`.
  found_work look_near(std::size_t index, bool with_guests) noexcept {
    auto& p = places[index];
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

  /// What `take(victim)` finds at the first of the other workers.
  template <class Take>
  job* steal(std::size_t index, Take take) noexcept {
    for (std::size_t step = 1; step < places.size(); ++step)
      if (auto* j = take(places[(index + step) % places.size()]))
        return j;
    return nullptr;
  }

  /// A job that the other worker will not come to soon.
  job* take_late_job(worker_place& victim, place_watch& watched,
                     std::uint64_t now) noexcept {
    const auto comes_soon = may_spin && victim.has_short_jobs()
                            && !worker_seat::server_sleeps(victim.seat.now());
    if (comes_soon && !watched.is_stuck(victim, now))
      return nullptr; // without a look at lists that it is about to change
    if (comes_soon)
      victim.was_stuck();
    return victim.take_for_other();
  }

  /// Looks everywhere for `search_ns`. Empty-handed when `give_up()` holds,
  /// asked after each look.
  template <class GiveUp>
  found_work search(std::size_t index, bool with_guests,
                    GiveUp give_up) noexcept {
    const auto until = now_ns() + (may_spin ? search_ns : 0);
    auto& slot = places[index].slot;
    slot.open();
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

  /// Ends a search by sleeping until `bit` is set, unless `reason_to_stay()`
  /// holds behind the fence.
  template <class Reason>
  void sleep(worker_place& p, std::uint32_t bit,
             Reason reason_to_stay) noexcept {
    close_slot(p);
    auto before = p.seat.change(0, bit | worker_seat::searching);
    if (before & worker_seat::searching)
      searchers.fetch_sub(1, std::memory_order_relaxed);
    sleepers.fetch_add(1, std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_seq_cst); // F2
    if (reason_to_stay()) {
      // An owner whose seat was lent meanwhile is none of the sleepers. It
      // takes no jobs either, though who pushed one may have relied on it.
      const auto as_owner = bit == worker_seat::up;
      if (p.seat.change(bit, 0, before,
                        [bit](std::uint32_t w) { return !(w & bit); })
          && !(as_owner && (before & worker_seat::lent)))
        sleepers.fetch_sub(1, std::memory_order_relaxed);
      if (as_owner && p.seat.is(worker_seat::lent))
        look_once_more();
      return;
    }
    p.seat.sleep_until(bit);
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
