// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>

#include <string>

namespace troupe::apps {

/// A value as one line of JSON. Names come from files and the command line, so
/// bytes that are not valid UTF-8 are replaced.
inline std::string json_text(const nlohmann::ordered_json& value) {
  return value.dump(-1, ' ', false,
                    nlohmann::ordered_json::error_handler_t::replace);
}

} // namespace troupe::apps
