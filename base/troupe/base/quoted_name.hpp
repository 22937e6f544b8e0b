// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace troupe {

/// Returns `text` with control characters, separators of lines, characters that
/// change the direction of text, and invalid UTF-8 bytes escaped as \xNN, for
/// one-line messages.
std::string one_line(std::string_view text);

/// Returns at most 120 bytes of `text` in single quotes, escaped as by
/// `one_line`. For names that come from files.
std::string quoted_name(std::string_view text);

} // namespace troupe
