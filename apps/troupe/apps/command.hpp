// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace troupe::apps {

/// The command `troupe`. Results go to stdout, everything else to stderr.
/// Returns the exit code: 0, 1 if the run failed, 2 if the command line is
/// wrong. Never throws; errors are printed as one line.
///
/// @param commit of the sources that the command was built from, which
///   --version prints; empty if nobody knows
int run_command(int argc, const char* const* argv,
                std::string_view commit) noexcept;

} // namespace troupe::apps
