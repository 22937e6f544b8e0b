// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/base/error.hpp>

#include <cstddef>
#include <deque>
#include <functional>
#include <string>
#include <utility>

namespace troupe::actors {

/// One thing that an actor is to do.
struct work_item {
  std::function<void()> start;
  /// Called instead of `start`, or if that throws.
  std::function<void(const error&)> refuse;
  bool needs_rest = false;   ///< starts only while nothing else runs
  bool writes_files = false; ///< starts only while no snapshot is being written
  bool trains = false;       ///< waits while training is held back
};

/// What an actor is still to do, in the order in which it was told. It holds a
/// bounded number of items. While training is held back, items that train wait,
/// and the others go on before them.
///
/// Thread rule: the actor's handlers.
class work_queue {
public:
  /// @param most items that wait
  /// @param at_once items that run at the same time
  /// @param may_train asked before an item that trains starts, which is then
  ///   the next thing to happen: false holds training back, until `try_again`
  work_queue(
    std::size_t most, std::size_t at_once,
    std::function<bool()> may_train = [] { return true; })
    : most_(most), at_once_(at_once), may_train_(std::move(may_train)) {}

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
  /// While the queue is paused, training is held back.
  void pause();
  void go_on();
  bool is_paused() const noexcept { return is_paused_; }
  ///@}
  /// `may_train` can have another answer now.
  void try_again() { start_items(); }
  /// Refuses all that waits and all that comes.
  void stop(const error& reason);

  std::size_t waiting() const noexcept { return waiting_.size(); }
  std::size_t running() const noexcept { return running_; }
  /// True if nothing runs and nothing is being written.
  bool is_at_rest() const noexcept { return running_ == 0 && !writes_; }

private:
  using items = std::deque<work_item>;

  bool has_room_for(const work_item& next) const noexcept;
  items::iterator next_to_start();
  void start_items();

  std::size_t most_;
  std::size_t at_once_;
  std::function<bool()> may_train_;
  items waiting_;
  std::size_t running_ = 0;
  bool writes_ = false;
  bool is_paused_ = false;
  bool is_starting_ = false;
  bool is_stopped_ = false;
};

} // namespace troupe::actors
