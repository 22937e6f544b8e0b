// SPDX-License-Identifier: Apache-2.0
#include <troupe/apps/common_options.hpp>
#include <troupe/apps/evaluation.hpp>
#include <troupe/apps/option_checks.hpp>
#include <troupe/apps/results/run_trace.hpp>
#include <troupe/apps/stop_request.hpp>
#include <troupe/apps/subcommands.hpp>
#include <troupe/apps/usage_error.hpp>
#include <troupe/graph/paddle/parameter_file.hpp>
#include <troupe/training/data/dataset.hpp>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <nlohmann/json.hpp>

#include <cstdio>
#include <memory>

namespace troupe::apps {

namespace {

struct eval_options {
  network_options network;
  data_options data;
  std::string params;
  std::uint64_t steps = 0; ///< 0: all
  bool json = false;
};

std::unique_ptr<batch_source> make_source(const eval_options& options,
                                          const program_bundle& bundle,
                                          arena& memory) {
  if (!options.data.feeds.empty())
    return open_feeds(options.data, bundle.feeds, memory);
  if (options.data.data.empty())
    throw usage_error("eval needs --data or --feeds");
  const std::filesystem::path path = options.data.data;
  const auto part =
    has_held_out(path) ? dataset_part::held_out : dataset_part::train;
  return make_dataset_source(
    load_dataset(path, bundle.feeds, part, memory),
    {.batch = choose_batch(options.data, bundle), .shuffle = false}, memory);
}

void print(const evaluation& result) {
  nlohmann::ordered_json line;
  line["loss"] = result.loss;
  line["accuracy"] = nullptr;
  if (result.answers) {
    line["accuracy"] = result.answers->accuracy();
    line["correct"] = result.answers->correct;
    line["total"] = result.answers->total;
  }
  line["samples"] = result.samples;
  std::printf("%s\n", line.dump().c_str());
}

int run_eval(const eval_options& options) {
  arena host(make_host_memory_source());
  executor_options wanted = make_executor_options(options.network);
  const program_bundle bundle =
    load_program(options.network.program, options.network.loss);
  auto source = make_source(options, bundle, host);
  if (options.steps > source->steps_per_epoch())
    throw usage_error("--steps " + std::to_string(options.steps)
                      + ", but the data has "
                      + std::to_string(source->steps_per_epoch()) + " batches");
  wanted.trace = trace_from_environment("eval " + options.network.program);
  wanted.parameters = std::make_shared<scope>();
  load_parameters(bundle.main, options.params, *wanted.parameters, host);
  const stop_request stop; // before this, a signal ends the process
  const stop_watch ends_late_stop(stop, end_if_it_takes(patience_for_stops));
  print(evaluate(bundle, wanted, *source,
                 options.steps ? options.steps : source->steps_per_epoch(),
                 stop));
  return 0;
}

} // namespace

void add_eval(CLI::App& app, action& chosen) {
  auto options = std::make_shared<eval_options>();
  auto& command = *app.add_subcommand(
    "eval", "loss and accuracy of a trained network, as one JSON object");
  add_program_argument(command, options->network);
  add_device_options(command, options->network);
  command
    .add_option("--threads", options->network.threads,
                "workers (default: one per core)")
    ->check(thread_count());
  command
    .add_option("--params", options->params,
                "parameters: a file, a folder, or a saved program folder")
    ->check(not_empty())
    ->required();
  add_data_options(command, options->data);
  command
    .add_option("--steps", options->steps, "batches to run (default: all)")
    ->check(positive());
  add_output_options(command, options->json,
                     "troupe eval digits --params saved --data data/digits");
  command.callback(
    [options, &chosen] { chosen = [options] { return run_eval(*options); }; });
}

} // namespace troupe::apps
