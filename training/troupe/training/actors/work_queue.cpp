// SPDX-License-Identifier: Apache-2.0
#include <troupe/training/actors/work_queue.hpp>

#include <exception>
#include <new>
#include <optional>
#include <utility>

namespace troupe::actors {

namespace {

std::optional<error> start(const work_item& item) {
  try {
    item.start();
    return std::nullopt;
  } catch (const error& failure) {
    return failure;
  } catch (const std::bad_alloc&) {
    return error(errc::out_of_memory, "no memory for a request");
  } catch (const std::exception& failure) {
    return error(errc::kernel_failure, failure.what());
  }
}

} // namespace

bool work_queue::add(work_item item) {
  if (is_stopped_) {
    item.refuse(error(errc::cancelled, "the actor is about to end"));
    return false;
  }
  if (waiting_.empty() && can_start(item)) {
    waiting_.push_back(std::move(item)); // it does not wait
  } else if (waiting_.size() >= most_) {
    item.refuse(error(errc::busy, std::to_string(most_)
                                    + " requests wait, no more are taken"));
    return false;
  } else {
    waiting_.push_back(std::move(item));
  }
  start_items();
  return true;
}

void work_queue::ended() {
  --running_;
  start_items();
}

void work_queue::ended_writing() {
  writes_ = false;
  start_items();
}

void work_queue::go_on() {
  is_paused_ = false;
  start_items();
}

void work_queue::stop(const error& reason) {
  is_stopped_ = true;
  for (auto& item : std::exchange(waiting_, {}))
    item.refuse(reason);
}

bool work_queue::can_start(const work_item& next) const noexcept {
  return !is_paused_ && running_ < (next.needs_rest ? 1 : at_once_)
         && !(next.writes_files && writes_);
}

void work_queue::start_items() {
  if (std::exchange(is_starting_, true)) // an item has ended while it started
    return;
  while (!waiting_.empty() && can_start(waiting_.front())) {
    auto item = std::move(waiting_.front());
    waiting_.pop_front();
    ++running_;
    if (const auto failure = start(item)) {
      --running_;
      item.refuse(*failure);
    }
  }
  is_starting_ = false;
}

} // namespace troupe::actors
