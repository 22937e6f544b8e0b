// SPDX-License-Identifier: Apache-2.0
#include <troupe/apps/common_options.hpp>
#include <troupe/apps/option_checks.hpp>
#include <troupe/apps/trace/trace_commands.hpp>
#include <troupe/apps/trace/trace_request.hpp>
#include <troupe/base/error.hpp>
#include <troupe/base/quoted_name.hpp>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <nlohmann/json.hpp>

#include <cstdio>
#include <filesystem>
#include <limits>
#include <memory>
#include <optional>
#include <string>

#include <sys/types.h>

namespace troupe::apps {

namespace {

struct live_options {
  pid_t process = 0;
  std::string level = "messages";
  std::string out;
  bool json = false;
};

void add_process(CLI::App& command, live_options& options) {
  command
    .add_option("PID", options.process,
                "number of a process of troupe train; or of troupe launch: all "
                "its ranks on this host")
    ->required()
    ->check(from_to(1, std::numeric_limits<pid_t>::max()));
}

/// Another process has another current folder.
std::string absolute(const std::string& file) {
  return file.empty() ? file : std::filesystem::absolute(file).string();
}

void print_answer(pid_t process, const std::string& file, bool as_json) {
  const nlohmann::ordered_json line{{"process", process}, {"file", file}};
  const auto text =
    as_json ? line.dump(-1, ' ', false,
                        nlohmann::ordered_json::error_handler_t::replace)
            : one_line(file);
  std::printf("%s\n", text.c_str());
}

/// Asks all ranks, also if one refuses.
int run_live(const live_options& options, bool starts) {
  const trace_request request{starts, parse_trace_level(options.level),
                              absolute(options.out)};
  std::optional<error> refused;
  for (const auto process : processes_to_ask(options.process))
    try {
      print_answer(process, ask_process(process, request), options.json);
    } catch (const error& failure) {
      if (!refused)
        refused = failure;
    }
  if (refused)
    throw error(*refused);
  return 0;
}

} // namespace

void add_trace_start(CLI::App& trace, action& chosen) {
  auto options = std::make_shared<live_options>();
  auto& command =
    *trace.add_subcommand("start", "begin a trace of a troupe train that runs");
  add_process(command, *options);
  command
    .add_option("--level", options->level,
                "what is recorded: steps, ops or messages")
    ->check(not_empty())
    ->check(CLI::IsMember({"steps", "ops", "messages"}))
    ->capture_default_str();
  command
    .add_option("--out", options->out,
                "the .trt file to write, which must not exist (default: "
                "troupe-PID.trt in the folder of the process)")
    ->check(not_empty());
  add_output_options(command, options->json,
                     "troupe trace start 4711 --level ops --out run.trt");
  command.callback([options, &chosen] {
    chosen = [options] { return run_live(*options, true); };
  });
}

void add_trace_stop(CLI::App& trace, action& chosen) {
  auto options = std::make_shared<live_options>();
  auto& command =
    *trace.add_subcommand("stop", "end a trace of a troupe train that runs");
  add_process(command, *options);
  add_output_options(command, options->json, "troupe trace stop 4711");
  command.callback([options, &chosen] {
    chosen = [options] { return run_live(*options, false); };
  });
}

} // namespace troupe::apps
