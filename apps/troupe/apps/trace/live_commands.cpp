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
#include <exception>
#include <filesystem>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

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

struct begun_trace {
  pid_t process;
  std::string file;
};

/// Ends traces that have just begun, and removes their files.
void undo(const std::vector<begun_trace>& begun) noexcept {
  for (const auto& [process, file] : begun)
    try {
      ask_process(process, {});
      std::filesystem::remove(file);
    } catch (const std::exception&) {
      // The process has ended, or somebody else was faster.
    }
}

/// Begins a trace on all ranks, or on none.
int run_start(const live_options& options) {
  const trace_request request{true, parse_trace_level(options.level),
                              absolute(options.out)};
  std::vector<begun_trace> begun;
  try {
    for (const auto process : processes_to_ask(options.process))
      begun.push_back({process, ask_process(process, request)});
  } catch (const error&) {
    undo(begun);
    throw;
  }
  for (const auto& [process, file] : begun)
    print_answer(process, file, options.json);
  return 0;
}

/// Asks all ranks, also if one refuses.
int run_stop(const live_options& options) {
  std::optional<error> refused;
  for (const auto process : processes_to_ask(options.process))
    try {
      print_answer(process, ask_process(process, {}), options.json);
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
  command.callback(
    [options, &chosen] { chosen = [options] { return run_start(*options); }; });
}

void add_trace_stop(CLI::App& trace, action& chosen) {
  auto options = std::make_shared<live_options>();
  auto& command =
    *trace.add_subcommand("stop", "end a trace of a troupe train that runs");
  add_process(command, *options);
  add_output_options(command, options->json, "troupe trace stop 4711");
  command.callback(
    [options, &chosen] { chosen = [options] { return run_stop(*options); }; });
}

} // namespace troupe::apps
