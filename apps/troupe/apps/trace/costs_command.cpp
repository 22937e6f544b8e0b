// SPDX-License-Identifier: Apache-2.0
#include <troupe/apps/common_options.hpp>
#include <troupe/apps/results/json_text.hpp>
#include <troupe/apps/trace/trace_commands.hpp>
#include <troupe/apps/trace/traced_run.hpp>
#include <troupe/base/quoted_name.hpp>
#include <troupe/trace/analysis/cost_table.hpp>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>

#include <cstdio>
#include <memory>

namespace troupe::apps {

namespace {

using json = nlohmann::ordered_json;

void print_costs_json(const trace::cost_table& costs) {
  for (const auto& row : costs.rows())
    std::printf("%s\n", json_text({{"op_type", row.type},
                                   {"shapes", row.shapes},
                                   {"device", row.device},
                                   {"count", row.count},
                                   {"ns", row.ns.median},
                                   {"ns_quarter", row.ns.quarter},
                                   {"ns_three_quarters", row.ns.three_quarters},
                                   {"bytes", row.bytes}})
                          .c_str());
}

void print_costs_text(const trace::cost_table& costs) {
  std::printf("%-28s %-7s %8s %10s %10s %10s %10s  %s\n", "op", "device",
              "count", "median", "quarter", "3 quarters", "allocates",
              "shapes");
  for (const auto& row : costs.rows())
    std::printf("%-28s %-7s %8zu %10s %10s %10s %10s  %s\n",
                one_line(row.type).c_str(), one_line(row.device).c_str(),
                row.count, time_text(row.ns.median).c_str(),
                time_text(row.ns.quarter).c_str(),
                time_text(row.ns.three_quarters).c_str(),
                bytes_text(row.bytes).c_str(), one_line(row.shapes).c_str());
}

int run_costs(const std::vector<std::string>& files, bool as_json) {
  const traced_run run{files};
  run.require_ops();
  const auto costs =
    trace::cost_table::measure(run.parts(), run.timeline(), run.graph());
  if (as_json)
    print_costs_json(costs);
  else
    print_costs_text(costs);
  return 0;
}

} // namespace

void add_trace_costs(CLI::App& trace, action& chosen) {
  struct costs_options {
    std::vector<std::string> files;
    bool json = false;
  };
  auto options = std::make_shared<costs_options>();
  auto& command = *trace.add_subcommand(
    "costs", "time and memory of ops by type, shapes and device");
  add_trace_files(command, options->files);
  add_output_options(command, options->json, "troupe trace costs run.trt");
  command.callback([options, &chosen] {
    chosen = [options] { return run_costs(options->files, options->json); };
  });
}

} // namespace troupe::apps
