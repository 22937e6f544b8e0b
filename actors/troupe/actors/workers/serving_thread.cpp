// SPDX-License-Identifier: Apache-2.0
#include <troupe/actors/workers/serving_thread.hpp>

#include <troupe/actors/workers/queue_policy.hpp>
#include <troupe/actors/workers/running_jobs.hpp>

#include <chrono>
#include <thread>

namespace troupe::actors {

serving_thread::serving_thread(worker_pool& pool)
  : pool_(pool), queue_(pool.queue()),
    is_worker_(this_worker_thread().queue == &queue_),
    seat_(is_worker_ ? this_worker_thread().index : job_queue::no_seat) {
  if (is_worker_)
    here_.emplace(queue_, seat_);
}

serving_thread::~serving_thread() {
  stand();
}

void serving_thread::sit() {
  if (here_)
    return;
  seat_ = pool_.borrow_seat();
  if (seat_ == job_queue::no_seat)
    return;
  here_.emplace(queue_, seat_);
  // If this thread did not get the seat of its current core, that core's worker
  // is awake. The two would compete for the core, while the core of the
  // borrowed seat is free.
  const auto core = current_core();
  if (pool_.own_policy() && take_all_cores(queue_.workers()) && core != seat_)
    on_core_.emplace(seat_);
}

void serving_thread::stand() {
  if (is_worker_ || !here_)
    return;
  on_core_.reset();
  here_.reset();
  queue_.give_back(seat_);
}

void serving_thread::serve(condition done) {
  const running_jobs here_now{pool_.system()};
  if (is_worker_) {
    serve_as_worker(done);
    return;
  }
  sit();
  if (!here_)
    return;
  while (auto* j = queue_.wait_until(seat_, done))
    here_->run_chain(*j, done);
  stand();
}

void serving_thread::serve_as_worker(condition done) {
  constexpr std::chrono::microseconds pause{20};
  // Two threads must not serve one seat: while it is lent, only its borrower
  // does.
  while (!done.holds())
    if (auto* j = queue_.is_lent(seat_) ? nullptr : queue_.pop(seat_))
      here_->run_chain(*j, done);
    else
      // This thread must not sleep in the queue: the step may end without
      // another job, and that does not wake the owner of a seat.
      std::this_thread::sleep_for(pause);
}

void serving_thread::serve_ready() {
  const running_jobs here_now{pool_.system()};
  sit();
  if (here_ && !(is_worker_ && queue_.is_lent(seat_)))
    while (auto* j = queue_.pop(seat_))
      here_->run_chain(*j);
}

} // namespace troupe::actors
