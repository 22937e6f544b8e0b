// SPDX-License-Identifier: Apache-2.0
#include <troupe/actors/remote/joint_steps.hpp>

#include <algorithm>

namespace troupe::actors {

bool joint_steps::part_ended(std::size_t side, step_id step,
                             const std::string& failure) {
  if (side >= ended_.size() || step != ended_[side])
    return false;
  ++ended_[side];
  if (!failure.empty() && step >= next_)
    failures_.emplace(step, failure); // the first one stays
  return true;
}

void joint_steps::lose(const std::string& why) {
  if (!lost_)
    lost_ = why;
}

bool joint_steps::has_ended(step_id step) const {
  return std::ranges::all_of(ended_,
                             [&](std::uint64_t parts) { return parts > step; });
}

std::optional<joint_steps::ended_step> joint_steps::next() {
  const auto whole = has_ended(next_);
  if (!whole && !(lost_ && ended_[self_] > next_))
    return {};
  ended_step ended{next_, {}};
  if (const auto failed = failures_.find(next_); failed != failures_.end()) {
    ended.failure = std::move(failed->second);
    failures_.erase(failed);
  } else if (!whole) {
    ended.failure = *lost_;
  }
  ++next_;
  return ended;
}

} // namespace troupe::actors
