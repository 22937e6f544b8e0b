// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/apps/subcommands.hpp>

namespace troupe::apps {

/// The subcommands of `troupe trace`. Each sets `chosen` if it is on the
/// command line.
void add_trace_export(CLI::App& trace, action& chosen);
void add_trace_report(CLI::App& trace, action& chosen);

} // namespace troupe::apps
