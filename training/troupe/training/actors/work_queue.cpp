// SPDX-License-Identifier: Apache-2.0
#include <troupe/training/actors/work_queue.hpp>

#include <algorithm>
#include <exception>
#include <iterator>
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
  waiting_.push_back(std::move(item));
  // One that starts at once does not wait.
  if (waiting_.size() > most_ && next_to_start() != std::prev(waiting_.end())) {
    item = std::move(waiting_.back());
    waiting_.pop_back();
    item.refuse(error(errc::busy, std::to_string(most_)
                                    + " requests wait, no more are taken"));
    return false;
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

void work_queue::pause() {
  is_paused_ = true;
  start_items(); // what waited behind items that train
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

bool work_queue::has_room_for(const work_item& next) const noexcept {
  return running_ < (next.needs_rest ? 1 : at_once_)
         && !(next.writes_files && writes_);
}

/// The oldest item, or the oldest of those that do not train while training is
/// held back. The end if that one cannot start yet.
work_queue::items::iterator work_queue::next_to_start() {
  auto next = waiting_.begin();
  if (next != waiting_.end() && next->trains) {
    if (!is_paused_ && !has_room_for(*next))
      return waiting_.end();
    if (is_paused_ || !may_train_())
      next = std::ranges::find(waiting_, false, &work_item::trains);
  }
  return next == waiting_.end() || has_room_for(*next) ? next : waiting_.end();
}

void work_queue::start_items() {
  if (std::exchange(is_starting_, true)) // an item has ended while it started
    return;
  for (auto next = next_to_start(); next != waiting_.end();
       next = next_to_start()) {
    const auto item = std::move(*next);
    waiting_.erase(next);
    ++running_;
    if (const auto failure = start(item)) {
      --running_;
      item.refuse(*failure);
    }
  }
  is_starting_ = false;
}

} // namespace troupe::actors
