// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/base/error.hpp>

#include <doctest/doctest.h>

#include <optional>
#include <string_view>

namespace troupe::test {

/// Runs `act` and returns the troupe::error that it throws. If it throws none,
/// the test case fails and ends.
template <class Act>
error caught(Act&& act) {
  std::optional<error> result;
  try {
    act();
  } catch (const error& thrown) {
    result = thrown;
  }
  REQUIRE_MESSAGE(result.has_value(), "no troupe::error was thrown");
  return *result;
}

/// True if the text of `thrown` contains `part`.
inline bool says(const error& thrown, std::string_view part) {
  auto found = std::string_view(thrown.what()).find(part) != part.npos;
  if (!found)
    MESSAGE("\"", std::string(part),
            "\" is not in: ", std::string(thrown.what()));
  return found;
}

} // namespace troupe::test
