// SPDX-License-Identifier: Apache-2.0
#include <troupe/base/job_queue.hpp>

#include <troupe/base/assert.hpp>
#include <troupe/base/job_queue_state.hpp>
#include <troupe/base/threads.hpp>

#include <algorithm>
#include <thread>
#include <utility>

namespace troupe {

namespace {

/// A worker reads the clock about once per this many ticks, and at least once
/// per this many jobs.
constexpr std::uint32_t ticks_between_times = 16 * short_job_ticks;
constexpr std::uint32_t most_jobs_between_times = 64;

} // namespace

// -- worker -------------------------------------------------------------------

worker::worker(job_queue& queue, std::size_t index) noexcept
  : queue_(queue), index_(index), outer_(std::exchange(current_, this)),
    place_(queue.state_->places[index]) {
  TROUPE_ASSERT(index < queue.workers());
  place_.thread.store(this_thread_number(), std::memory_order_relaxed);
}

worker::~worker() {
  current_ = outer_;
}

job* worker::take_kept() noexcept {
  return first_kept_ == behind_kept_ ? nullptr
                                     : kept_[first_kept_++ % most_kept];
}

job* worker::next_of_chain() noexcept {
  auto* j = std::exchange(next_, nullptr);
  if (!j)
    j = take_kept();
  if (!j && place_.has_short_jobs() && !queue_.state_->others_wait())
    j = place_.jobs.take_newest();
  if (j)
    --chain_left_;
  return j;
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
  put_kept_back();
  place_.turn();
}

/// The first job of the next chain, which begins without leaving `run_chain`,
/// because that would take as long as several short jobs. Null if other jobs
/// must run first.
job* worker::begin_next_chain(condition until) noexcept {
  auto& s = *queue_.state_;
  if (until.holds() || s.others_wait())
    return nullptr;
  auto* first = place_.jobs.take_oldest();
  if (first)
    put_kept_back();
  else
    first = take_kept();
  if (!first)
    first = std::exchange(next_, nullptr);
  else if (next_) // another worker can take it while the oldest runs
    put_next_back();
  if (!first)
    return nullptr;
  chain_left_ = chain_limit;
  place_.jobs_since_oldest = 0;
  place_.turn();
  place_.turn();
  return first;
}

/// Moves the next job to this worker's list, where others can steal it.
void worker::put_next_back() noexcept {
  place_.jobs.push(*std::exchange(next_, nullptr), next_priority_);
  queue_.state_->after_push();
}

void worker::keep(job& j) noexcept {
  if (timed_until_ == 0 || behind_kept_ - first_kept_ == most_kept
      || !place_.has_short_jobs()) {
    push(j, job_priority::normal);
    return;
  }
  kept_[behind_kept_++ % most_kept] = &j;
}

/// Moves the kept jobs to this worker's list, where others can steal them.
void worker::put_kept_back() noexcept {
  if (first_kept_ == behind_kept_)
    return;
  while (auto* j = take_kept())
    place_.jobs.push(*j, job_priority::normal);
  queue_.state_->after_push();
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
  if (!place_.has_short_jobs())
    put_kept_back();
  jobs_between_times_ = std::clamp<std::uint32_t>(
    ticks_between_times / place_.pace.load(std::memory_order_relaxed), 1,
    most_jobs_between_times);
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
  if (auto* w = worker::current_of(*this)) {
    w->push(j, priority);
    return;
  }
  state_->foreign_pushes.fetch_add(1, std::memory_order_relaxed);
  state_->foreign.push_newest(&j);
  state_->after_push();
}

std::uint64_t job_queue::foreign_pushes() const noexcept {
  return state_->foreign_pushes.load(std::memory_order_relaxed);
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
  auto* w = worker::current_of(*this);
  TROUPE_ASSERT(w);
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
      if (auto* g = s.guests.take_oldest()) {
        s.pass_guests_on();
        return {nullptr, g};
      }
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
      if (found || over()) // unless it was given a job
        return found;
      continue;
    }
    s.sleep(p, worker_seat::up,
            [&] { return s.any_job() || !s.guests.empty() || stopping(); });
  }
}

void* job_queue::wait_for_guest() noexcept {
  auto& s = *state_;
  for (;;) {
    if (auto* g = s.guests.take_oldest()) {
      s.pass_guests_on();
      return g;
    }
    if (s.stopped.load(std::memory_order_relaxed))
      return nullptr;
    s.sleep_as_stand_in();
  }
}

void job_queue::stop() noexcept {
  auto& s = *state_;
  s.stopped.store(true, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_seq_cst); // F1
  for (auto& p : s.places)
    s.wake_owner(p);
  s.wake_stand_in();
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

pid_t job_queue::thread_of(std::size_t index) const noexcept {
  return state_->places[index].thread.load(std::memory_order_relaxed);
}

void job_queue::wake_borrowers() noexcept {
  std::atomic_thread_fence(std::memory_order_seq_cst); // F1
  // If a thread borrows from an owner that is just falling asleep, it
  // decrements `sleepers` before the owner has incremented it. `sleepers` can
  // then be too small for a moment.
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

void job_queue::share_short_jobs(bool yes) noexcept {
  // The line is written only if something changes: searching workers read it.
  auto& shares = state_->shares_short_jobs;
  if (shares.load(std::memory_order_relaxed) != yes)
    shares.store(yes, std::memory_order_relaxed);
}

bool job_queue::attach(outside_work& outside) noexcept {
  outside_work* none = nullptr;
  return state_->outside.compare_exchange_strong(none, &outside);
}

void job_queue::detach(outside_work& outside) noexcept {
  auto* attached = &outside;
  if (!state_->outside.compare_exchange_strong(attached, nullptr))
    return;
  while (state_->outside_users.load() != 0)
    std::this_thread::yield();
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
