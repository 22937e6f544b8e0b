// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>

namespace troupe::apps {

/// Prints the result line of a command that wrote a file from traces.
void print_written_file(const std::string& file, std::size_t events, bool json);

} // namespace troupe::apps
