// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/base/error.hpp>

#include <cstddef>
#include <deque>
#include <functional>
#include <string>

namespace troupe::actors {

/// One thing that an actor is to do.
struct work_item {
  std::function<void()> start;
  /// Called instead of `start`, or if that throws.
  std::function<void(const error&)> refuse;
  bool needs_rest = false;   ///< starts only while nothing else runs
  bool writes_files = false; ///< starts only while no snapshot is being written
};

/// What an actor is still to do, in the order in which it was told. It holds a
/// bounded number of items.
///
/// Thread rule: the actor's handlers.
class work_queue {
public:
  /// @param most items that wait
  /// @param at_once items that run at the same time
  work_queue(std::size_t most, std::size_t at_once)
    : most_(most), at_once_(at_once) {}

  /// Adds an item and starts what can start. An item that does not fit is
  /// refused with error(busy), and one that comes after `stop` with
  /// error(cancelled): false.
  bool add(work_item item);
  /// An item that was started is done. May be called while it starts.
  void ended();
  ///@{
  /// Files are being written, also after their item has ended.
  void begins_writing() noexcept { writes_ = true; }
  void ended_writing();
  ///@}
  ///@{
  /// While the queue is paused, nothing starts.
  void pause() noexcept { is_paused_ = true; }
  void go_on();
  bool is_paused() const noexcept { return is_paused_; }
  ///@}
  /// Refuses all that waits and all that comes.
  void stop(const error& reason);

  std::size_t waiting() const noexcept { return waiting_.size(); }
  std::size_t running() const noexcept { return running_; }
  /// True if nothing runs and nothing is being written.
  bool is_at_rest() const noexcept { return running_ == 0 && !writes_; }

private:
  bool can_start(const work_item& next) const noexcept;
  void start_items();

  std::size_t most_;
  std::size_t at_once_;
  std::deque<work_item> waiting_;
  std::size_t running_ = 0;
  bool writes_ = false;
  bool is_paused_ = false;
  bool is_starting_ = false;
  bool is_stopped_ = false;
};

} // namespace troupe::actors
