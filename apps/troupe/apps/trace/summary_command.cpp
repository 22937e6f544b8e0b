// SPDX-License-Identifier: Apache-2.0
#include <troupe/apps/common_options.hpp>
#include <troupe/apps/results/json_text.hpp>
#include <troupe/apps/trace/summary_text.hpp>
#include <troupe/apps/trace/trace_commands.hpp>
#include <troupe/apps/trace/traced_run.hpp>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>

#include <cstdio>
#include <memory>

namespace troupe::apps {

namespace {

int run_summary(const std::vector<std::string>& files, bool as_json) {
  const traced_run run{files};
  const auto summary =
    trace::summarize(run.parts(), run.timeline(), run.graph());
  const auto text = as_json ? json_text(summary_json(run, summary)) + "\n"
                            : summary_text(run, summary);
  std::fputs(text.c_str(), stdout);
  return 0;
}

} // namespace

void add_trace_summary(CLI::App& trace, action& chosen) {
  struct summary_options {
    std::vector<std::string> files;
    bool json = false;
  };
  auto options = std::make_shared<summary_options>();
  auto& command = *trace.add_subcommand(
    "summary", "where the time of steps goes, and who waited for whom");
  add_trace_files(command, options->files);
  add_output_options(command, options->json, "troupe trace summary run.trt");
  command.callback([options, &chosen] {
    chosen = [options] { return run_summary(options->files, options->json); };
  });
}

} // namespace troupe::apps
