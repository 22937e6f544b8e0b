// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/actors/tasks/op_task.hpp>

#include <cstddef>
#include <memory>
#include <mutex>
#include <vector>

namespace troupe::actors {

/// Where the ranks of a collective of one process meet: the last one that comes
/// runs it for all. It is the step's collective whole, so results do not depend
/// on who that is.
class rank_meeting {
public:
  /// @param joint the collective of all ranks
  rank_meeting(std::size_t ranks, std::unique_ptr<op_task> joint)
    : joint_(std::move(joint)), waiting_(ranks) {}

  /// A rank has come, in a step that has failed or not. `pending`: others are
  /// still missing, `whole` hears. Any thread; a rank comes to the next step
  /// once it has heard of the end of this one.
  launch_status come(std::size_t rank, step_state& step, completion& whole);

private:
  std::unique_ptr<op_task> joint_;
  std::mutex mutex_; // guards what follows
  std::size_t came_ = 0;
  std::vector<completion*> waiting_; // by rank; null: it has not come
};

/// The part that a rank has in a collective: it ends later, with all others.
std::unique_ptr<op_task> make_rank_task(std::shared_ptr<rank_meeting> at,
                                        std::size_t rank);

} // namespace troupe::actors
