// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace troupe::apps {

/// The commit of the sources that the command was built from, in 12 digits,
/// with
/// "-dirty" if files differed from it. Empty if they are in no repository, and
/// were in none when they were packed. cmake/TroupeCommit.cmake writes its
/// definition, which is a part of the executable alone: each commit would
/// otherwise link all tests anew.
extern const std::string_view source_commit;

} // namespace troupe::apps
