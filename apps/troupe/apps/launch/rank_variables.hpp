// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/comm/rank_environment.hpp>

#include <string>
#include <vector>

namespace troupe::apps {

/// This process's variables without those that tell a rank its place in a job,
/// and then `own`, each NAME=VALUE. Thread rule: no other thread may set
/// variables meanwhile.
std::vector<std::string>
variables_with(const std::vector<std::string>& own = {});

/// The variables that tell a rank its place: TROUPE_RANK and so on.
std::vector<std::string> variables_of(const comm::rank_environment& place);

} // namespace troupe::apps
