// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace troupe::graph {

/// Paddle's name for an absent argument.
inline constexpr std::string_view empty_argument = "@EMPTY@";

/// True if an op's argument names a variable: neither `empty_argument` nor "".
constexpr bool names_variable(std::string_view argument) noexcept {
  return !argument.empty() && argument != empty_argument;
}

/// The only argument of a slot. Empty if the slot has no argument or several,
/// or if the argument names no variable.
inline std::string_view only_variable(const std::vector<std::string>& slot) {
  return slot.size() == 1 && names_variable(slot[0]) ? std::string_view{slot[0]}
                                                     : std::string_view{};
}

} // namespace troupe::graph
