// SPDX-License-Identifier: Apache-2.0
#include <troupe/apps/common_options.hpp>
#include <troupe/apps/option_checks.hpp>
#include <troupe/apps/results/output_places.hpp>
#include <troupe/apps/trace/trace_commands.hpp>
#include <troupe/apps/trace/traced_run.hpp>
#include <troupe/apps/trace/written_file.hpp>
#include <troupe/trace/export/html_report.hpp>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

namespace troupe::apps {

namespace {

struct report_options {
  std::vector<std::string> files;
  std::string out;
  bool json = false;
};

int run_report(const report_options& options) {
  const output_place out{"--out", options.out};
  require_places_of_their_own({&out, 1}, options.files, "");
  const traced_run run{options.files};
  warn_of_missing_ranks(run.parts());
  std::size_t events = 0;
  for (const auto& part : run.parts())
    events += part.events.size();
  trace::write_html_report(run.parts(), options.out, run.clocks());
  print_written_file(options.out, events, options.json);
  return 0;
}

} // namespace

void add_trace_report(CLI::App& trace, action& chosen) {
  auto options = std::make_shared<report_options>();
  auto& command = *trace.add_subcommand(
    "report", "write a page about a run, for an issue tracker");
  add_trace_files(command, options->files);
  command.add_option("--out", options->out, "the page to write")
    ->required()
    ->check(not_empty());
  add_output_options(command, options->json,
                     "troupe trace report F.trt --out F.html");
  command.callback([options, &chosen] {
    chosen = [options] { return run_report(*options); };
  });
}

} // namespace troupe::apps
