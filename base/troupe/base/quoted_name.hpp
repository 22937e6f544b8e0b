// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace troupe {

/// `text` in single quotes for a message of one line: control characters as
/// \xNN, at most 120 bytes of it. For names that come out of files.
std::string quoted_name(std::string_view text);

} // namespace troupe
