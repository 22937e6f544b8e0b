// SPDX-License-Identifier: Apache-2.0
#include <troupe/apps/common_options.hpp>
#include <troupe/apps/trace/top_rows.hpp>
#include <troupe/apps/trace/trace_commands.hpp>
#include <troupe/apps/trace/traced_run.hpp>
#include <troupe/base/quoted_name.hpp>
#include <troupe/trace/analysis/cost_table.hpp>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>

#include <cstddef>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace troupe::apps {

namespace {

struct costs_options {
  std::vector<std::string> files;
  std::optional<std::size_t> top;
  bool json = false;
};

/// By the time of the ops of a step. A row of no ops is for other graphs.
top_rows choose_costs(const trace::cost_table& costs,
                      std::optional<std::size_t> top) {
  std::vector<double> times;
  for (const auto& row : costs.rows())
    times.push_back(row.ns * static_cast<double>(row.ops));
  return choose_rows(times, top);
}

void print_costs_text(const trace::cost_table& costs, const top_rows& rows) {
  std::printf("%-28s %-7s %5s %8s %10s %10s %10s %10s  %s\n", "op", "device",
              "ops", "count", "time", "quarter", "3 quarters", "allocates",
              "shapes -> results, attributes");
  for (std::size_t i = 0; i < costs.rows().size(); ++i) {
    if (!rows.shown[i])
      continue;
    const auto& row = costs.rows()[i];
    std::printf("%-28s %-7s %5zu %8zu %10s %10s %10s %10s  %s -> %s, %s\n",
                one_line(row.op.empty() ? row.key.type : "  " + row.op).c_str(),
                one_line(row.key.device).c_str(), row.ops, row.count,
                time_text(row.ns).c_str(), time_text(row.runs.quarter).c_str(),
                time_text(row.runs.three_quarters).c_str(),
                bytes_text(row.bytes).c_str(), one_line(row.key.shapes).c_str(),
                one_line(row.key.results).c_str(),
                one_line(row.key.attributes).c_str());
  }
  std::printf("%s", rows.rest().c_str());
}

int run_costs(const costs_options& options) {
  const traced_run run{options.files};
  warn_of_missing_ranks(run.parts());
  run.require_ops();
  const auto costs =
    trace::cost_table::measure(run.parts(), run.timeline(), run.graph());
  if (!options.json) {
    print_costs_text(costs, choose_costs(costs, options.top));
    return 0;
  }
  for (const auto& row : costs.rows())
    std::printf("%s\n", to_json(row).c_str());
  return 0;
}

} // namespace

void add_trace_costs(CLI::App& trace, action& chosen) {
  auto options = std::make_shared<costs_options>();
  auto& command = *trace.add_subcommand(
    "costs", "time and memory of ops, by what they do and on which device");
  add_trace_files(command, options->files);
  add_top_option(command, options->top);
  add_output_options(command, options->json,
                     "troupe trace costs run.trt --json > costs.jsonl");
  command.callback(
    [options, &chosen] { chosen = [options] { return run_costs(*options); }; });
}

} // namespace troupe::apps
