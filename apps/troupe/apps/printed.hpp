// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdio>
#include <string>

namespace troupe::apps {

/// printf into a string, for lines of at most 200 characters.
template <class... Values>
std::string printed(const char* format, Values... values) {
  std::array<char, 201> text{};
  std::snprintf(text.data(), text.size(), format, values...);
  return text.data();
}

} // namespace troupe::apps
