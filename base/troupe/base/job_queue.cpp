// SPDX-License-Identifier: Apache-2.0
#include <troupe/base/job_queue.hpp>

#include <troupe/base/assert.hpp>
#include <troupe/base/clock.hpp>
#include <troupe/base/cores.hpp>
#include <troupe/base/spin.hpp>
#include <troupe/base/worker_place.hpp>

#include <algorithm>
#include <thread>
#include <utility>
#include <vector>

namespace troupe {

namespace {

thread_local worker* current_worker = nullptr;

/// How long an idle worker looks for jobs before it sleeps.
constexpr std::uint64_t search_ns = 50'000;

constexpr int most_near_looks = 256;

/// A worker looks at the clock about once in so many ticks, at least once in so
/// many jobs.
constexpr std::uint32_t ticks_between_times = 16 * short_job_ticks;
constexpr std::uint32_t most_jobs_between_times = 64;

} // namespace

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
  explicit state(std::size_t workers)
    : places(workers), may_spin(workers <= usable_cores()) {}

  std::vector<worker_place> places;
  ready_list<job> foreign;
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

// -- worker -------------------------------------------------------------------

worker::worker(job_queue& queue, std::size_t index, void* host) noexcept
  : queue_(queue), index_(index), host_(host),
    outer_(std::exchange(current_worker, this)),
    place_(queue.state_->places[index]) {
  TROUPE_ASSERT(index < queue.workers());
}

worker::~worker() {
  current_worker = outer_;
}

worker* worker::current() noexcept {
  return current_worker;
}

void worker::run_chain(job& j, condition until) {
  chain_left_ = chain_limit;
  place_.turn();
  timed_until_ = ticks();
  for (auto* now = &j; now;
       now = chain_left_ > 0 ? next_of_chain() : begin_next_chain(until)) {
    now->run(*this);
    did(1);
  }
  time_jobs();
  place_.jobs_since_oldest += 1 + chain_limit - chain_left_;
  timed_until_ = 0;
  if (next_)
    put_next_back();
  place_.turn();
}

job* worker::next_of_chain() noexcept {
  auto* j = std::exchange(next_, nullptr);
  if (!j && place_.has_short_jobs() && !queue_.state_->others_wait())
    j = place_.jobs.take_newest();
  if (j)
    --chain_left_;
  return j;
}

/// The first job of a chain that follows without leaving `run_chain`, which
/// would take as long as several short jobs; null if others must come first.
job* worker::begin_next_chain(condition until) noexcept {
  auto& s = *queue_.state_;
  if (until.holds() || s.others_wait())
    return nullptr;
  auto* first = place_.jobs.take_oldest();
  if (!first)
    first = std::exchange(next_, nullptr);
  else if (next_) // another worker may have it while the oldest runs
    put_next_back();
  if (!first)
    return nullptr;
  chain_left_ = chain_limit;
  place_.jobs_since_oldest = 0;
  place_.turn();
  place_.turn();
  return first;
}

/// To the list of its own, which others look into.
void worker::put_next_back() noexcept {
  place_.jobs.push(*std::exchange(next_, nullptr), next_priority_);
  queue_.state_->after_push();
}

void worker::did(std::uint32_t count) noexcept {
  untimed_ += count;
  if (untimed_ >= jobs_between_times_)
    time_jobs();
}

bool worker::has_short_jobs() const noexcept {
  if (!place_.has_short_jobs())
    return false;
  const auto untimed_ticks = timed_until_ == 0 ? 0 : ticks() - timed_until_;
  const std::uint64_t pace = place_.pace.load(std::memory_order_relaxed);
  return untimed_ticks < untimed_ * pace + short_job_ticks;
}

void worker::time_jobs() noexcept {
  if (untimed_ == 0)
    return;
  const auto now = ticks();
  place_.took(std::exchange(untimed_, 0), now - timed_until_);
  timed_until_ = now;
  jobs_between_times_ = std::clamp<std::uint32_t>(
    ticks_between_times / place_.pace.load(std::memory_order_relaxed), 1,
    most_jobs_between_times);
}

void worker::run_soon(job& j, job_priority priority) noexcept {
  if (next_ || timed_until_ == 0) {
    push(j, priority);
    return;
  }
  next_ = &j;
  next_priority_ = priority;
}

void worker::push(job& j, job_priority priority) noexcept {
  auto& s = *queue_.state_;
  if (!has_short_jobs() && s.give(place_, index_, j))
    return;
  place_.jobs.push(j, priority);
  s.after_push();
}

// -- job_queue ----------------------------------------------------------------

job_queue::job_queue(std::size_t workers)
  : state_(std::make_unique<state>(workers)) {
  TROUPE_ASSERT(workers > 0);
}

job_queue::~job_queue() = default;

std::size_t job_queue::workers() const noexcept {
  return state_->places.size();
}

void job_queue::push(job& j, job_priority priority) noexcept {
  auto* w = worker::current();
  if (w && &w->queue() == this) {
    w->push(j, priority);
    return;
  }
  state_->foreign.push_newest(&j);
  state_->after_push();
}

void job_queue::push_to(std::size_t home, job& j,
                        job_priority priority) noexcept {
  auto& to = state_->places[home % workers()];
  if (to.slot.give(j))
    return;
  to.jobs.push(j, priority);
  state_->after_push();
}

void job_queue::push_guest(void* guest) noexcept {
  state_->guests.push_newest(guest);
  std::atomic_thread_fence(std::memory_order_seq_cst); // F1
  state_->wake_owner_if_none_searches();
}

void job_queue::yield(job& j, job_priority priority) noexcept {
  auto* w = worker::current();
  TROUPE_ASSERT(w && &w->queue() == this);
  state_->places[w->index()].jobs.push_oldest(j, priority);
  state_->after_push();
}

bool job_queue::others_wait(std::size_t index) const noexcept {
  auto& s = *state_;
  return !s.places[index].jobs.empty() || s.others_wait();
}

job* job_queue::pop(std::size_t index) noexcept {
  if (auto found = state_->look_near(index, false))
    return found.work;
  return state_->steal(index, [](auto& p) { return p.take_for_other(); });
}

void* job_queue::pop_guest() noexcept {
  return state_->guests.take_oldest();
}

found_work job_queue::wait(std::size_t index) noexcept {
  auto& s = *state_;
  auto& p = s.places[index];
  constexpr auto here = worker_seat::present | worker_seat::up;
  if ((p.seat.now() & here) != here)
    p.seat.change(here, 0);
  const auto stopping = [&s] {
    return s.stopped.load(std::memory_order_relaxed);
  };
  const auto over = [&] { return stopping() && !s.any_job(); };
  for (;;) {
    if (p.seat.is(worker_seat::lent)) {
      if (auto* g = s.guests.take_oldest())
        return {nullptr, g};
      if (stopping())
        return {};
      s.sleep_beside_borrower(p);
      continue;
    }
    auto found = s.look_near(index, true);
    if (!found) {
      s.begin_search(p);
      found = s.search(index, true, over);
    }
    if (found || over()) {
      s.end_search(p);
      if (found || over()) // not if it was given a job
        return found;
      continue;
    }
    s.sleep(p, worker_seat::up,
            [&] { return s.any_job() || !s.guests.empty() || stopping(); });
  }
}

void job_queue::stop() noexcept {
  auto& s = *state_;
  s.stopped.store(true, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_seq_cst); // F1
  for (auto& p : s.places)
    s.wake_owner(p);
}

void job_queue::restart() noexcept {
  state_->stopped.store(false, std::memory_order_relaxed);
}

void job_queue::leave(std::size_t index) noexcept {
  state_->places[index].seat.change(0, worker_seat::present | worker_seat::up);
}

// -- borrowing ----------------------------------------------------------------

std::size_t job_queue::borrow(std::size_t preferred) noexcept {
  auto& s = *state_;
  const auto first =
    (preferred == no_seat ? current_core() : preferred) % s.places.size();
  for (std::size_t step = 0; step < s.places.size(); ++step) {
    const auto index = (first + step) % s.places.size();
    std::uint32_t before = 0;
    if (!s.places[index].seat.change(
          worker_seat::lent | worker_seat::borrower_up | worker_seat::searching,
          0, before, [](std::uint32_t w) {
            return (w & (worker_seat::lent | worker_seat::up)) == 0;
          }))
      continue;
    s.searchers.fetch_add(1, std::memory_order_relaxed);
    if (before & worker_seat::present)
      s.sleepers.fetch_sub(1, std::memory_order_relaxed);
    return index;
  }
  return no_seat;
}

job* job_queue::wait_until(std::size_t index, condition done) noexcept {
  auto& s = *state_;
  auto& p = s.places[index];
  const auto is_done = [done] { return done.holds(); };
  while (!is_done()) {
    auto found = s.look_near(index, false);
    if (!found) {
      s.begin_search(p);
      found = s.search(index, false, is_done);
    }
    if (found) {
      s.end_search(p);
      return found.work;
    }
    if (!is_done())
      s.sleep(p, worker_seat::borrower_up,
              [&] { return s.any_job() || is_done(); });
  }
  s.end_search(p);
  return nullptr;
}

bool job_queue::is_lent(std::size_t index) const noexcept {
  return state_->places[index].seat.is(worker_seat::lent);
}

void job_queue::wake_borrowers() noexcept {
  std::atomic_thread_fence(std::memory_order_seq_cst); // F1
  // Whoever borrows from an owner that is just falling asleep counts it off
  // before it has counted itself, so `sleepers` may be too small for a moment.
  for (auto& p : state_->places)
    if (p.seat.is(worker_seat::lent))
      state_->wake(p);
}

void job_queue::give_back(std::size_t index) noexcept {
  auto& s = *state_;
  auto& p = s.places[index];
  const auto before = p.seat.change(
    0, worker_seat::lent | worker_seat::borrower_up | worker_seat::searching);
  if (before & worker_seat::searching)
    s.searchers.fetch_sub(1, std::memory_order_relaxed);
  if ((before & (worker_seat::present | worker_seat::up))
      == worker_seat::present)
    s.sleepers.fetch_add(1, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_seq_cst); // F2
  s.look_once_more();
}

void job_queue::quiesce() const noexcept {
  for (auto& p : state_->places) {
    const auto seen = p.epoch.load(std::memory_order_acquire);
    if (seen % 2 == 0)
      continue;
    while (p.epoch.load(std::memory_order_acquire) == seen)
      std::this_thread::yield();
  }
}

} // namespace troupe
