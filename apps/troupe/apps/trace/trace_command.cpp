// SPDX-License-Identifier: Apache-2.0
#include <troupe/apps/subcommands.hpp>
#include <troupe/apps/trace/trace_commands.hpp>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>

namespace troupe::apps {

void add_trace(CLI::App& app, action& chosen) {
  auto& trace = *app.add_subcommand(
    "trace", "who waited for whom, from the files of train --trace");
  trace.require_subcommand(0, 1); // 0: as in parse_and_run
  trace.footer("Example:\n  troupe trace summary run.trt");
  add_trace_summary(trace, chosen);
  add_trace_critical_path(trace, chosen);
  add_trace_costs(trace, chosen);
  add_trace_diff(trace, chosen);
  add_trace_export(trace, chosen);
  add_trace_report(trace, chosen);
  add_trace_start(trace, chosen);
  add_trace_stop(trace, chosen);
}

} // namespace troupe::apps
