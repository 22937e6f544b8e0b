// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace troupe::apps {

/// The command `troupe`. Results go to stdout, everything else to stderr.
/// Returns the exit code: 0, 1 if the run failed, 2 if the command line is
/// wrong. Never throws; errors are printed as one line.
int run_command(int argc, const char* const* argv) noexcept;

} // namespace troupe::apps
