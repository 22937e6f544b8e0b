// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/base/ids.hpp>

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace troupe::actors {

/// Which steps of a run have ended: a step has when all its parts have. Parts
/// of one side end in the order of steps.
///
/// When another side is lost, nothing of the others is waited for any more:
/// steps then end with this side's part.
///
/// Thread rule: one thread at a time.
class joint_steps {
public:
  struct ended_step {
    step_id step = 0;
    std::string failure; ///< the first that a side reported, or empty
  };

  /// @param sides that each step has a part of  @param self this one
  joint_steps(std::size_t sides, std::size_t self)
    : ended_(sides, 0), self_(self) {}

  /// A side's part of a step has ended. False, and nothing else happens, if
  /// that cannot be: no such side, or not the step behind its last.
  bool part_ended(std::size_t side, step_id step, const std::string& failure);

  /// Another side is lost. Steps whose parts have not all ended fail with
  /// `why`, if no side has reported another failure.
  void lose(const std::string& why);
  bool lost() const noexcept { return lost_.has_value(); }
  /// What a side has reported of the first step that failed and has not ended;
  /// empty if there is none.
  std::string first_failure() const {
    return failures_.empty() ? std::string{} : failures_.begin()->second;
  }

  /// The next step that has ended, each once, in their order; none if it has
  /// not.
  std::optional<ended_step> next();

private:
  bool has_ended(step_id step) const;

  std::vector<std::uint64_t> ended_; // by side: parts that have ended
  std::size_t self_;
  step_id next_ = 0;
  std::map<step_id, std::string> failures_;
  std::optional<std::string> lost_;
};

} // namespace troupe::actors
