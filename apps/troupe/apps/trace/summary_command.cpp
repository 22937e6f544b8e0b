// SPDX-License-Identifier: Apache-2.0
#include <troupe/apps/common_options.hpp>
#include <troupe/apps/option_checks.hpp>
#include <troupe/apps/results/json_text.hpp>
#include <troupe/apps/trace/summary_text.hpp>
#include <troupe/apps/trace/trace_commands.hpp>
#include <troupe/apps/trace/traced_run.hpp>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>

#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace troupe::apps {

namespace {

struct summary_options {
  std::vector<std::string> files;
  std::optional<std::string> step; ///< a whole number
  bool slowest = false;
  bool json = false;
};

/// Null: nobody asks for a step, so the median one is explained.
const trace::step_times* step_of(const traced_run& run,
                                 const summary_options& options) {
  if (options.step)
    return &run.step(*options.step);
  if (!options.slowest)
    return nullptr;
  if (const auto* slowest = trace::slowest_step(run.timeline()))
    return slowest;
  throw run.refusal(run.why_no_step());
}

int run_summary(const summary_options& options) {
  // Of a run that was killed at any moment, there is a summary.
  const traced_run run{options.files, options.files.size() == 1
                                        ? without_graph::told
                                        : without_graph::refused};
  const auto summary = trace::summarize(run.parts(), run.timeline(),
                                        run.graph(), step_of(run, options));
  const auto which = options.slowest ? which_step::slowest
                     : options.step  ? which_step::named
                                     : which_step::median;
  const auto text = options.json ? json_text(summary_json(run, summary)) + "\n"
                                 : summary_text(run, summary, which);
  std::fputs(text.c_str(), stdout);
  return 0;
}

} // namespace

void add_trace_summary(CLI::App& trace, action& chosen) {
  auto options = std::make_shared<summary_options>();
  auto& command = *trace.add_subcommand(
    "summary", "where the time of steps goes, and who waited for whom");
  add_trace_files(command, options->files);
  auto* step = command
                 .add_option("--step", options->step,
                             "explain this step (default: the median one)")
                 ->check(whole_number());
  command
    .add_flag("--slowest", options->slowest,
              "explain the step that took longest, of those that count")
    ->excludes(step);
  add_output_options(command, options->json, "troupe trace summary run.trt");
  command.callback([options, &chosen] {
    chosen = [options] { return run_summary(*options); };
  });
}

} // namespace troupe::apps
