// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/apps/rank_part.hpp>
#include <troupe/kernels/scope.hpp>
#include <troupe/training/training_loop.hpp>

#include <optional>
#include <string>
#include <vector>

namespace troupe::apps {

/// Where a rank of an elastic job is, besides the values of its scope.
struct rank_state {
  run_position position;
  /// The line of metrics of the last step; empty if it is unknown.
  std::string last_line = {};
};

/// Makes all ranks of an epoch begin with the same state: those that are
/// behind, such as new ones, get the values and the position of the first rank
/// that has done the most steps, also its statistics. Others keep their values.
///
/// With the strategy reduce, optimizer state is divided over the ranks. Each
/// variable then comes from a rank that has it and has done the most steps, and
/// all ranks have all of it afterwards.
///
/// All ranks call it, and wait for each other. Throws error(peer_failure) if
/// the epoch ends meanwhile.
/// @param own where this rank is
/// @param divided names of the variables without which the state is incomplete,
///   the same on all ranks; empty: each rank has its whole state
/// @return where all ranks are. Nothing, on all ranks, if no rank that has done
///   the most steps has one of the variables: it is lost, and the scope is as
///   before.
std::optional<rank_state>
exchange_state(rank_part& part, scope& parameters, const rank_state& own,
               const std::vector<std::string>& divided = {});

} // namespace troupe::apps
