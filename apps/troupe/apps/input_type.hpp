// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

namespace troupe::apps {

/// What lies under a path that is to be read, links followed;
/// file_type::not_found: nothing. Throws error(io_failure) with the path if
/// that cannot be told: a name that is too long, links in a circle, a folder
/// that the user may not look into.
std::filesystem::file_type input_type(const std::filesystem::path& path);

} // namespace troupe::apps
