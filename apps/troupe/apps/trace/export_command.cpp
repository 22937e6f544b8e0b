// SPDX-License-Identifier: Apache-2.0
#include <troupe/apps/common_options.hpp>
#include <troupe/apps/option_checks.hpp>
#include <troupe/apps/results/output_places.hpp>
#include <troupe/apps/trace/trace_commands.hpp>
#include <troupe/apps/trace/traced_run.hpp>
#include <troupe/apps/trace/written_file.hpp>
#include <troupe/base/quoted_name.hpp>
#include <troupe/trace/export/trace_export.hpp>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>

#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace troupe::apps {

namespace {

struct export_options {
  std::vector<std::string> files;
  std::string format;
  std::string out;
  bool json = false;
};

/// What one looks for in the file was not recorded. The level counts, not what
/// is there: of a damaged file, the level may be all that is left.
void tell_what_is_missing(const trace::process_trace& part,
                          trace::export_format format) {
  const bool has_ops = part.run.level >= trace_level::ops;
  const bool is_table = format == trace::export_format::csv
                        || format == trace::export_format::sqlite;
  if (has_ops && (!is_table || part.run.level >= trace_level::messages))
    return;
  std::fprintf(
    stderr, "note: %s: level %s: it has no %s; record with --trace-level %s\n",
    one_line(part.file).c_str(), std::string{to_string(part.run.level)}.c_str(),
    has_ops    ? "messages"
    : is_table ? "ops and no messages"
               : "ops",
    has_ops ? "messages" : "ops or messages");
}

int run_export(const export_options& options) {
  const output_place out{"--out", options.out};
  require_places_of_their_own({&out, 1}, options.files, "");
  auto traces = read_traces(options.files);
  warn_of_missing_ranks(traces);
  const auto format = trace::parse_export_format(options.format);
  std::size_t events = 0;
  for (const auto& t : traces) {
    events += t.events.size();
    tell_what_is_missing(t, format);
  }
  warn_of_clocks(trace::export_trace(std::move(traces), format, options.out));
  print_written_file(options.out, events, options.json);
  return 0;
}

/// Those that this build has.
std::vector<std::string> format_names() {
  std::vector<std::string> names;
  for (auto name : trace::export_format_names)
    if (trace::is_built_in(trace::parse_export_format(name)))
      names.emplace_back(name);
  return names;
}

/// "a, b or c".
std::string choice_text(const std::vector<std::string>& names) {
  std::string text;
  for (const auto& name : names)
    text += (text.empty() ? "" : &name == &names.back() ? " or " : ", ") + name;
  return text;
}

} // namespace

void add_trace_export(CLI::App& trace, action& chosen) {
  auto options = std::make_shared<export_options>();
  auto& command = *trace.add_subcommand(
    "export", "write traces in the format of another program");
  add_trace_files(command, options->files);
  const auto formats = format_names();
  command.add_option("--format", options->format, choice_text(formats))
    ->required()
    ->check(not_empty())
    ->check(CLI::IsMember(formats));
  command.add_option("--out", options->out, "the file to write")
    ->required()
    ->check(not_empty());
  add_output_options(command, options->json,
                     "troupe trace export --format perfetto F.trt F.1.trt "
                     "--out F.pftrace");
  command.callback([options, &chosen] {
    chosen = [options] { return run_export(*options); };
  });
}

} // namespace troupe::apps
