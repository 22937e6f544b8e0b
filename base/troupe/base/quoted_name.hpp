// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace troupe {

/// `text` with control characters, and bytes that are no UTF-8, as \xNN: for a
/// message of one line.
std::string one_line(std::string_view text);

/// At most 120 bytes of `text` in single quotes, as `one_line` gives them. For
/// names that come out of files.
std::string quoted_name(std::string_view text);

} // namespace troupe
