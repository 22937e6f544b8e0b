// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace troupe::trace {

/// `text` as a JSON string, with its quotes. Bytes that are no UTF-8 are
/// replaced.
std::string json_string(std::string_view text);

} // namespace troupe::trace
