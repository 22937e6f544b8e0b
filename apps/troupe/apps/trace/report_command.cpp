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

#include <memory>
#include <string>

namespace troupe::apps {

namespace {

struct report_options {
  std::string trace;
  std::string out;
  bool json = false;
};

int run_report(const report_options& options) {
  const output_place out{"--out", options.out};
  require_places_of_their_own({&out, 1}, {&options.trace, 1}, "");
  const auto traces = read_traces({options.trace});
  const auto& read = traces.front();
  trace::write_html_report(read, options.out);
  print_written_file(options.out, read.events.size(), options.json);
  return 0;
}

} // namespace

void add_trace_report(CLI::App& trace, action& chosen) {
  auto options = std::make_shared<report_options>();
  auto& command = *trace.add_subcommand(
    "report", "write a page about a trace, for an issue tracker");
  command.add_option("TRACE", options->trace, "F.trt")
    ->required()
    ->check(not_empty());
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
