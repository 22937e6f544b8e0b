// SPDX-License-Identifier: Apache-2.0
#include <troupe/apps/common_options.hpp>
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

void print_costs_text(const trace::cost_table& costs) {
  std::printf("%-28s %-7s %5s %8s %10s %10s %10s %10s  %s\n", "op", "device",
              "ops", "count", "time", "quarter", "3 quarters", "allocates",
              "shapes -> results, attributes");
  for (const auto& row : costs.rows())
    std::printf("%-28s %-7s %5zu %8zu %10s %10s %10s %10s  %s -> %s, %s\n",
                one_line(row.op.empty() ? row.key.type : "  " + row.op).c_str(),
                one_line(row.key.device).c_str(), row.ops, row.count,
                time_text(row.ns).c_str(), time_text(row.runs.quarter).c_str(),
                time_text(row.runs.three_quarters).c_str(),
                bytes_text(row.bytes).c_str(), one_line(row.key.shapes).c_str(),
                one_line(row.key.results).c_str(),
                one_line(row.key.attributes).c_str());
}

int run_costs(const std::vector<std::string>& files, bool as_json) {
  const traced_run run{files};
  warn_of_missing_ranks(run.parts());
  run.require_ops();
  const auto costs =
    trace::cost_table::measure(run.parts(), run.timeline(), run.graph());
  if (!as_json) {
    print_costs_text(costs);
    return 0;
  }
  for (const auto& row : costs.rows())
    std::printf("%s\n", to_json(row).c_str());
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
    "costs", "time and memory of ops, by what they do and on which device");
  add_trace_files(command, options->files);
  add_output_options(command, options->json,
                     "troupe trace costs run.trt --json > costs.jsonl");
  command.callback([options, &chosen] {
    chosen = [options] { return run_costs(options->files, options->json); };
  });
}

} // namespace troupe::apps
