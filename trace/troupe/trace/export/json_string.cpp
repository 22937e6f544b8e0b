// SPDX-License-Identifier: Apache-2.0
#include <troupe/trace/export/json_string.hpp>

#include <nlohmann/json.hpp>

namespace troupe::trace {

std::string json_string(std::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', false,
                                   nlohmann::json::error_handler_t::replace);
}

} // namespace troupe::trace
