// SPDX-License-Identifier: Apache-2.0
#include <troupe/actors/backend/backend.hpp>
#include <troupe/actors/configure.hpp>
#include <troupe/actors/steps/executor_graph.hpp>
#include <troupe/apps/common_options.hpp>
#include <troupe/apps/option_checks.hpp>
#include <troupe/apps/subcommands.hpp>
#include <troupe/apps/training/device_choice.hpp>
#include <troupe/apps/training/placing.hpp>
#include <troupe/apps/training/train_run.hpp>
#include <troupe/apps/training/training_options.hpp>
#include <troupe/graph/graph_export.hpp>
#include <troupe/graph/wiring/wiring_plan.hpp>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>

#include <cstddef>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

namespace troupe::apps {

namespace {

struct graph_options {
  train_options train;
  std::string format = "json";
  std::size_t nodes = 0; ///< 0: no job
  bool collectives = false;
  bool wiring = false;
  bool json = false;
};

/// The options of `troupe train` that change nothing in its graph. They are
/// accepted, so that the command line of a training shows its graph.
constexpr const char* without_effect[] = {
  "--synthetic", "--steps",        "--epochs",  "--params",
  "--seed",      "--save",         "--metrics", "--loss-curve",
  "--fetch-out", "--check-nan",    "--profile", "--deterministic",
  "--dry-run",   "--memory-limit", "--trace",   "--trace-level",
  "--watchdog"};

/// The executor options that `troupe train` uses for the same command line.
executor_options train_options_of(const graph_options& options,
                                  const program_bundle& bundle) {
  auto wanted = make_train_options(options.train, bundle);
  wanted.strategy = strategy_for(options.train.network, wanted.devices);
  wanted.lowering.batch = samples_per_step(options.train, bundle);
  wanted.lowering.merge_in_updates = !options.collectives;
  if (!options.train.place.empty())
    wanted.places = read_places(options.train.place);
  if (options.nodes > 0) {
    if (options.train.network.strategy.empty())
      wanted.strategy = graph::merge_strategy::all_reduce; // as in a job
    const auto process_of = spread_devices(wanted, options.nodes);
    wanted.hooks.places.assign(process_of.begin(), process_of.end());
  }
  return wanted;
}

/// Without places to go to, the handles of a job are shown as `--place` names
/// them.
graph::ssa_graph graph_of(const graph_options& options,
                          const executor_options& wanted,
                          const program_bundle& bundle) {
  const auto program =
    actors::exposed(std::make_shared<const graph::program>(bundle.main));
  return options.nodes > 0 && wanted.places.empty()
           ? actors::build_unplaced_graph(program, wanted, bundle.loss)
           : actors::build_graph(program, wanted, bundle.loss);
}

/// The streams that an executor would use, with their ticket groups.
std::vector<graph::planned_stream> streams_of(const graph::ssa_graph& g,
                                              const executor_options& wanted) {
  auto planned = graph::plan_streams(g, worker_count(wanted.threads));
  const auto devices =
    make_devices(wanted.devices, {wanted.waits_by, wanted.sums_in_order});
  std::vector<std::unique_ptr<stream>> made;
  std::vector<const stream*> streams;
  for (auto& s : planned)
    streams.push_back(made
                        .emplace_back(devices[s.device]->make_stream(
                          {std::string{to_string(s.kind)}, s.width}))
                        .get());
  graph::set_ticket_groups(planned, streams);
  return planned;
}

std::string text_of(const graph_options& options, const graph::ssa_graph& g,
                    const executor_options& wanted) {
  if (!options.wiring)
    return options.format == "dot" ? to_dot(g) : to_json(g) + "\n";
  const graph::wiring_plan plan{g,
                                {.streams = streams_of(g, wanted),
                                 .steps_overlap = wanted.steps_in_flight > 1}};
  return options.json ? to_json(plan, g) + "\n" : to_text(plan, g);
}

int run_graph(const graph_options& options) {
  const auto bundle =
    load_program(options.train.network.program, options.train.network.loss);
  const auto wanted = train_options_of(options, bundle);
  require_fetches(bundle, wanted.fetches);
  const auto g = graph_of(options, wanted, bundle);
  const auto text = text_of(options, g, wanted);
  std::fwrite(text.data(), 1, text.size(), stdout);
  return 0;
}

} // namespace

void add_graph(CLI::App& app, action& chosen) {
  auto options = std::make_shared<graph_options>();
  auto& command = *app.add_subcommand(
    "graph", "print the op and variable handles that train would run with the "
             "same options (cpu means cpu:1)");
  add_train_options(command, options->train);
  for (const auto* name : without_effect)
    command.get_option(name)->group("Options of train without effect here");
  // Training writes what it fetches.
  command.get_option("--fetch")->remove_needs(
    command.get_option("--fetch-out"));
  command
    .add_option("--nodes", options->nodes,
                "the graph of a job of so many ranks. Without --place, its "
                "handles are named as --place names them; with it, sends and "
                "receives are shown")
    ->check(positive());
  command.add_flag("--collectives", options->collectives,
                   "show the strategy's collectives instead of updates that "
                   "merge gradients themselves");
  auto* wiring = command.add_flag("--wiring", options->wiring,
                                  "print the messages that a step sends");
  command.add_option("--format", options->format, "json or dot")
    ->check(not_empty())
    ->check(CLI::IsMember({"json", "dot"}))
    ->capture_default_str()
    ->excludes(wiring); // --wiring prints text, or with --json an object
  add_output_options(command, options->json,
                     "troupe graph mlp --devices cpu:2 --format dot | dot "
                     "-Tsvg > mlp.svg");
  command.callback(
    [options, &chosen] { chosen = [options] { return run_graph(*options); }; });
}

} // namespace troupe::apps
