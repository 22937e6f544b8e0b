// SPDX-License-Identifier: Apache-2.0
#include <troupe/apps/common_options.hpp>
#include <troupe/apps/dashboard/dashboard_options.hpp>
#include <troupe/apps/option_checks.hpp>
#include <troupe/apps/subcommands.hpp>
#include <troupe/apps/training/train_run.hpp>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>

#include <memory>

namespace troupe::apps {

namespace {

void add_length_options(CLI::App& command, train_options& options) {
  auto* steps = command.add_option("--steps", options.steps, "steps to train")
                  ->check(positive());
  command
    .add_option("--epochs", options.epochs, "passes over the data (default: 1)")
    ->check(positive())
    ->excludes(steps);
  constexpr double most_steps = 1e6;
  command
    .add_option("--accumulate", options.accumulate,
                "steps whose gradients one update of the parameters adds up")
    ->check(positive(most_steps))
    ->capture_default_str();
}

void add_result_options(CLI::App& command, train_options& options) {
  command
    .add_option("--save", options.save,
                "write a program folder with the trained parameters")
    ->check(not_empty())
    ->excludes("--dry-run"); // a dry run trains nothing
  command
    .add_option("--metrics", options.metrics, "write one line of JSON per step")
    ->check(not_empty());
  command
    .add_option("--loss-curve", options.loss_curve,
                "draw the losses as an .svg file")
    ->check(not_empty());
  command
    .add_option(
      "--watchdog", options.watchdog,
      "seconds that a step may take before a line on stderr says what "
      "it waits for; 0: no watchdog")
    ->check(not_negative(1e6))
    ->capture_default_str();
  command
    .add_option("--flight-recorder", options.flight_recorder,
                "what is always recorded: off, steps, ops or messages; a .trt "
                "file gets it when a step fails or takes too long, and on "
                "SIGUSR1")
    ->check(not_empty())
    ->check(CLI::IsMember({"off", "steps", "ops", "messages"}))
    ->capture_default_str();
  command
    .add_option("--trace", options.trace,
                "write a .trt file: who waited for whom, and why a step took "
                "so long; troupe trace reads it")
    ->check(not_empty());
  command
    .add_option(
      "--trace-level", options.trace_level,
      "what is recorded for --trace, TROUPE_TRACE and SIGUSR2: steps, "
      "ops or messages (default: messages)")
    ->check(not_empty())
    ->check(CLI::IsMember({"steps", "ops", "messages"}));
  auto* fetch = add_list_option(command, "--fetch", options.fetch,
                                "variables to fetch, VAR,VAR,...")
                  ->check(name_list());
  auto* out = command
                .add_option("--fetch-out", options.fetch_out,
                            ".npz file for fetched variables")
                ->check(not_empty());
  fetch->needs(out);
  out->needs(fetch);
}

void add_snapshot_options(CLI::App& command, train_options& options) {
  auto* folder = command
                   .add_option("--snapshots", options.snapshots,
                               "folder of snapshots, from which a run that was "
                               "killed can go on")
                   ->check(not_empty())
                   ->excludes("--dry-run");
  auto* every = command
                  .add_option("--snapshot-every", options.snapshot_every,
                              "steps between two snapshots")
                  ->check(positive())
                  ->needs(folder);
  folder->needs(every);
  command
    .add_option("--keep", options.keep, "number of snapshots that are kept")
    ->check(positive())
    ->capture_default_str()
    ->needs(folder);
  command
    .add_option("--resume", options.resume,
                "auto: go on from the newest snapshot, if there is one")
    ->check(not_empty())
    ->needs(folder);
}

void add_verify_option(CLI::App& command, train_options& options) {
  command
    .add_option("--verify-every", options.verify_every,
                "steps between two checks that all devices have the same "
                "parameters")
    ->check(positive())
    ->excludes("--dry-run");
  add_repeatable_option(command, "--slow", options.slow,
                        "make ops take longer, NAME=TIME,NAME=x1.2,...: tries "
                        "out what notices slow ranks")
    ->check(not_empty())
    ->excludes("--dry-run");
}

void add_rank_options(CLI::App& command, rank_options& options) {
  command
    .add_option("--comm", options.engine,
                "what carries sums between ranks: shm (shared memory), gloo "
                "(TCP), mpi, or auto: shm on one host, otherwise mpi if it has "
                "started the ranks, or gloo")
    ->check(not_empty())
    ->check(CLI::IsMember({"auto", "shm", "gloo", "mpi"}))
    ->capture_default_str();
  command
    .add_option("--data-network", options.data_network,
                "trusted: no stranger can reach the network on which ranks of "
                "several hosts exchange values; gloo and mpi encrypt nothing")
    ->check(not_empty())
    ->check(CLI::IsMember({"trusted"}));
  command
    .add_option("--interface", options.interface,
                "network interface of this host, such as eth1, at whose "
                "address ranks of other hosts reach this one (default: "
                "TROUPE_INTERFACE, else the address from which rank 0 is "
                "reached)")
    ->check(not_empty());
}

void add_run_options(CLI::App& command, train_options& options) {
  command
    .add_option("--place", options.place,
                "file of lines 'PATTERN RANK': the ops and variables whose "
                "names fit run on another rank of the job (without a job: on "
                "another device); see troupe graph --nodes")
    ->check(not_empty());
  command
    .add_option("--threads", options.network.threads,
                "workers (default: one per core)")
    ->check(thread_count());
  command
    .add_option("--params", options.params,
                "initial parameters: a file, a folder, or a saved "
                "program folder")
    ->check(not_empty());
  command
    .add_option("--seed", options.seed,
                "seed of initial values, dropout and order of samples")
    ->check(not_negative())
    ->capture_default_str();
  command.add_flag(
    "--deterministic", options.deterministic,
    "no trial of devices: results are bit-identical in every run with "
    "the same --threads");
  command.add_flag("--check-nan", options.check_nan,
                   "stop at the first op that produces a NaN or infinity");
  auto* dry_run = command.add_flag("--dry-run", options.dry_run,
                                   "send all messages, run no kernel");
  command
    .add_flag("--profile", options.profile, "report time and speed per op type")
    ->excludes(dry_run);
}

} // namespace

void add_train_options(CLI::App& command, train_options& options) {
  add_program_argument(command, options.network);
  add_device_options(command, options.network);
  add_strategy_options(command, options.network);
  add_precision_option(command, options.network);
  add_data_options(command, options.data);
  command
    .add_flag("--synthetic", options.data.synthetic,
              "random batches of the program's shapes")
    ->excludes("--feeds")
    ->excludes("--data");
  add_length_options(command, options);
  add_run_options(command, options);
  add_result_options(command, options);
}

void add_train(CLI::App& app, action& chosen) {
  auto options = std::make_shared<train_options>();
  auto& command = *app.add_subcommand("train", "train a network");
  add_train_options(command, *options);
  add_snapshot_options(command, *options);
  add_verify_option(command, *options);
  add_rank_options(command, options->ranks);
  add_dashboard_option(command, options->dashboard);
  add_output_options(command, options->json,
                     "troupe train digits --data data/digits --devices cpu:2 "
                     "--epochs 30 --save saved");
  command.callback([options, &chosen] {
    check_dashboard(options->dashboard, "--dashboard");
    chosen = [options] { return run_train(*options); };
  });
}

} // namespace troupe::apps
