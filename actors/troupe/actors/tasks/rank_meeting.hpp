// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/actors/tasks/op_task.hpp>

#include <cstddef>
#include <memory>
#include <mutex>
#include <vector>

namespace troupe::actors {

/// Synchronizes the ranks of a collective in one process: the last rank to
/// arrive runs the collective for all. It runs the whole collective, so results
/// do not depend on which rank is last.
class rank_meeting {
public:
  /// @param joint the collective of all ranks
  rank_meeting(std::size_t ranks, std::unique_ptr<op_task> joint)
    : joint_(std::move(joint)), waiting_(ranks) {}

  /// Called when a rank arrives, also in a failed step. Returns `pending` if
  /// other ranks are missing; `whole` is then notified later. A rank arrives
  /// for the next step only after it has been notified. Any thread.
  launch_status come(std::size_t rank, step_state& step, completion& whole);

private:
  std::unique_ptr<op_task> joint_;
  std::mutex mutex_; // guards all members below
  std::size_t came_ = 0;
  std::vector<completion*> waiting_; // by rank; null: not arrived
};

/// Makes the task of one rank of a collective. It completes together with all
/// other ranks.
std::unique_ptr<op_task> make_rank_task(std::shared_ptr<rank_meeting> at,
                                        std::size_t rank);

} // namespace troupe::actors
