// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/apps/rank_part.hpp>
#include <troupe/apps/training.hpp>
#include <troupe/kernels/scope.hpp>

#include <string>

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
/// All ranks call it, and wait for each other. Throws error(peer_failure) if
/// the epoch ends meanwhile.
/// @param own where this rank is
/// @return where all ranks are
rank_state exchange_state(rank_part& part, scope& parameters,
                          const rank_state& own);

} // namespace troupe::apps
