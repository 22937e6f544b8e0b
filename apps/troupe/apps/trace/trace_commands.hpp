// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/apps/subcommands.hpp>

namespace CLI {
class App;
} // namespace CLI

namespace troupe::apps {

/// Each adds a subcommand of `troupe trace` that sets `chosen` if it is on the
/// command line.
void add_trace_summary(CLI::App& trace, action& chosen);
void add_trace_critical_path(CLI::App& trace, action& chosen);
void add_trace_costs(CLI::App& trace, action& chosen);
void add_trace_diff(CLI::App& trace, action& chosen);
void add_trace_export(CLI::App& trace, action& chosen);
void add_trace_report(CLI::App& trace, action& chosen);
void add_trace_start(CLI::App& trace, action& chosen);
void add_trace_stop(CLI::App& trace, action& chosen);

} // namespace troupe::apps
