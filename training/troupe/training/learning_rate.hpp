// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/graph/program.hpp>

#include <string>
#include <vector>

namespace troupe {

/// The variables from which updates of the parameters take their learning
/// rates: each one once, in the order of the updates.
std::vector<std::string> learning_rates_of(const graph::program& main);

/// The persistable variable from which all updates of the parameters take the
/// learning rate: one float number, which steps can feed. Throws
/// error(not_found) if the program updates no parameter, and
/// error(invalid_argument) if updates take several rates, or if the program
/// computes the rate itself, as with a schedule.
std::string learning_rate_variable(const graph::program& main);

} // namespace troupe
