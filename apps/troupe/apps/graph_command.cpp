// SPDX-License-Identifier: Apache-2.0
#include <troupe/actors/executor_graph.hpp>
#include <troupe/apps/common_options.hpp>
#include <troupe/apps/subcommands.hpp>
#include <troupe/graph/graph_export.hpp>
#include <troupe/graph/hazard_checker.hpp>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>

#include <cstdio>
#include <memory>

namespace troupe::apps {

namespace {

struct graph_options {
  network_options network;
  std::string format = "json";
  bool json = false;
};

/// The graph that `troupe train` runs with the same options, but for updates
/// that merge gradients: scripts look for the strategy's collectives.
int run_graph(const graph_options& options) {
  executor_options wanted = make_executor_options(options.network);
  wanted.merge_in_updates = false;
  const program_bundle bundle =
    load_program(options.network.program, options.network.loss);
  const graph::ssa_graph g =
    build_ssa_graph(bundle.main, actors::build_options_of(wanted, bundle.loss));
  check_hazards(g, wanted.steps_in_flight);
  const std::string text =
    options.format == "dot" ? to_dot(g) : to_json(g) + "\n";
  std::fwrite(text.data(), 1, text.size(), stdout);
  return 0;
}

} // namespace

void add_graph(CLI::App& app, action& chosen) {
  auto options = std::make_shared<graph_options>();
  auto& command = *app.add_subcommand(
    "graph", "print the graph of op and variable handles over the devices");
  add_program_argument(command, options->network);
  add_device_options(command, options->network);
  add_strategy_options(command, options->network);
  command.add_option("--format", options->format, "json or dot")
    ->check(CLI::IsMember({"json", "dot"}))
    ->capture_default_str();
  add_output_options(command, options->json,
                     "troupe graph mlp --devices cpu:2 --format dot | dot "
                     "-Tsvg > mlp.svg");
  command.callback(
    [options, &chosen] { chosen = [options] { return run_graph(*options); }; });
}

} // namespace troupe::apps
