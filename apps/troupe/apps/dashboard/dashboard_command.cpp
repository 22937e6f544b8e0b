// SPDX-License-Identifier: Apache-2.0
#include <troupe/apps/common_options.hpp>
#include <troupe/apps/dashboard/dashboard_options.hpp>
#include <troupe/apps/option_checks.hpp>
#include <troupe/apps/stop_request.hpp>
#include <troupe/apps/subcommands.hpp>
#include <troupe/apps/trace/traced_run.hpp>
#include <troupe/dashboard/board.hpp>
#include <troupe/trace/merge.hpp>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <nlohmann/json.hpp>

#include <chrono>
#include <cstdio>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace troupe::apps {

namespace {

struct file_options {
  std::vector<std::string> files;
  dashboard_options dashboard;
  bool json = false;
};

/// False if nobody can have read it.
bool print_link(const std::string& link, bool as_json) {
  if (as_json)
    std::printf("%s\n", nlohmann::json({{"link", link}}).dump().c_str());
  else
    std::printf("%s\n", link.c_str());
  // Whoever waits for it reads a pipe.
  return std::fflush(stdout) == 0 && std::ferror(stdout) == 0;
}

// Playing a file changes nothing: whoever looks may also pause it.
int run_dashboard(const file_options& options) {
  const stop_request stop;
  auto parts = read_traces(options.files);
  trace::merge_clocks(parts);
  const auto board = make_board(options.dashboard);
  board->show(std::move(parts));
  if (!print_link(board->control_link(), options.json))
    return 1; // that it is the output's fault, the end of the command tells
  constexpr std::chrono::milliseconds between_looks{50};
  while (!stop.stopped())
    std::this_thread::sleep_for(between_looks);
  return 0;
}

} // namespace

void add_dashboard(CLI::App& app, action& chosen) {
  auto options = std::make_shared<file_options>();
  options->dashboard.address = default_dashboard_address;
  auto& command = *app.add_subcommand(
    "dashboard", "look at the files of train --trace in the browser");
  add_trace_files(command, options->files);
  command
    .add_option("--address", options->dashboard.address,
                "HOST:PORT to listen on; port 0: a free one")
    ->check(not_empty())
    ->capture_default_str();
  add_dashboard_access(command, options->dashboard, "");
  add_output_options(command, options->json, "troupe dashboard run.trt");
  command.callback([options, &chosen] {
    check_dashboard(options->dashboard, "--address");
    chosen = [options] { return run_dashboard(*options); };
  });
}

} // namespace troupe::apps
