// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace troupe::graph {

/// Paddle's name for an argument that an op does without.
inline constexpr std::string_view empty_argument = "@EMPTY@";

/// Whether an op's argument is a variable: neither `empty_argument` nor "".
constexpr bool names_variable(std::string_view argument) noexcept {
  return !argument.empty() && argument != empty_argument;
}

} // namespace troupe::graph
