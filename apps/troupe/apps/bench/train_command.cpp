// SPDX-License-Identifier: Apache-2.0
#include <troupe/apps/bench/bench_commands.hpp>
#include <troupe/apps/bench/training_bench.hpp>
#include <troupe/apps/data/samples.hpp>
#include <troupe/apps/machine.hpp>
#include <troupe/apps/machine_roofline.hpp>
#include <troupe/apps/option_checks.hpp>
#include <troupe/apps/progress.hpp>
#include <troupe/apps/results/json_text.hpp>
#include <troupe/apps/results/output_places.hpp>
#include <troupe/apps/training/device_choice.hpp>
#include <troupe/base/error.hpp>
#include <troupe/base/quoted_name.hpp>
#include <troupe/base/version.hpp>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <iostream>
#include <memory>

namespace troupe::apps {

namespace {

struct train_bench_options {
  training_bench_options training;
  /// 0: as many as fit into `default_ms`, within `fewest_steps` to
  /// `most_steps`.
  std::uint64_t steps = 0;
  std::uint64_t warm_up = 3;
  std::string save_start; ///< .npz
  bool turns = false;
  bool json = false;
};

constexpr double default_ms = 3000;
constexpr std::uint64_t fewest_steps = 5, most_steps = 2000;
constexpr double most_timed_steps = 1e8; // each step stores two numbers

/// The measured figures, in SI units unless noted otherwise.
struct train_figures {
  samples steps; ///< in ns
  double loss = 0;
  std::uint64_t grown_bytes = 0; ///< growth of the process since its start
  std::size_t peak_bytes = 0;
  graph::program_cost cost;
  graph::roofline machine;

  double seconds() const { return steps.median() * 1e-9; }
  double flops_per_s() const { return cost.total().flops / seconds(); }
  double attainable_s() const { return machine.seconds(cost); }
};

std::uint64_t grown_since(std::uint64_t start) {
  return peak_resident_bytes() - std::min(start, peak_resident_bytes());
}

/// Number of steps that fill the default time, estimated from the last warm-up
/// step.
std::uint64_t choose_steps(const train_bench_options& o,
                           const timed_steps& warm_up) {
  if (o.steps > 0)
    return o.steps;
  const auto fit = warm_up.ms.empty() ? 0.0 : default_ms / warm_up.ms.back();
  return std::clamp(static_cast<std::uint64_t>(fit), fewest_steps, most_steps);
}

train_figures measure(const train_bench_options& o, training_bench& bench,
                      std::uint64_t memory_at_start) {
  train_figures figures;
  progress shown;
  const auto steps = choose_steps(o, bench.run(o.warm_up));
  const auto done =
    bench.run(steps, [&](std::uint64_t step, double loss, double ms) {
      shown.update(
        {step, steps, loss, static_cast<double>(bench.batch()) * 1e3 / ms});
    });
  for (double ms : done.ms)
    figures.steps.add(ms * 1e6);
  figures.loss = done.losses.back();
  figures.grown_bytes = grown_since(memory_at_start);
  figures.peak_bytes = bench.peak_bytes();
  figures.cost = graph::count_cost(bench.bundle().main, bench.batch());
  figures.machine =
    measure_roofline(choose_workers(o.training.network.threads));
  return figures;
}

nlohmann::ordered_json describe_machine(const graph::roofline& measured) {
  const auto report = examine_machine();
  return {{"processor", report.processor},
          {"cores", report.cores},
          {"instruction_sets", report.instruction_sets},
          {"gflops", measured.flops_per_s * 1e-9},
          {"gb_per_s", measured.bytes_per_s * 1e-9}};
}

void print_json(const train_bench_options& o, const training_bench& bench,
                const train_figures& f) {
  const auto total = f.cost.total();
  nlohmann::ordered_json out;
  out["net"] = o.training.network.program;
  out["batch"] = bench.batch();
  out["devices"] = describe_devices(o.training.network, bench.devices());
  out["strategy"] = graph::to_string(bench.strategy());
  out["precision"] = o.training.network.precision;
  out["threads"] = choose_workers(o.training.network.threads);
  out["ms"] = f.seconds() * 1e3;
  out["min_ms"] = f.steps.least() * 1e-6;
  out["samples_per_s"] = static_cast<double>(bench.batch()) / f.seconds();
  out["loss"] = f.loss;
  out["peak_bytes"] = f.peak_bytes;
  out["grown_bytes"] = f.grown_bytes;
  out["gflop_per_step"] = total.flops * 1e-9;
  out["gb_per_step"] = total.bytes * 1e-9;
  out["gflops"] = f.flops_per_s() * 1e-9;
  out["peak_share"] = f.flops_per_s() / f.machine.flops_per_s;
  out["attainable_ms"] = f.attainable_s() * 1e3;
  out["attainable_share"] = f.attainable_s() / f.seconds();
  out["machine"] = describe_machine(f.machine);
  std::printf("%s\n", json_text(out).c_str());
}

void print_text(const train_bench_options& o, const training_bench& bench,
                const train_figures& f) {
  std::printf(
    "%s, batch %lld, %s, %d threads: %.3f ms per step (least %.3f), %.0f "
    "samples/s, %.1f GFLOP/s = %.0f %% of %.0f, attainable %.3f ms = %.0f %%, "
    "%.1f MB\n",
    one_line(o.training.network.program).c_str(),
    static_cast<long long>(bench.batch()),
    describe_devices(o.training.network, bench.devices()).c_str(),
    choose_workers(o.training.network.threads), f.seconds() * 1e3,
    f.steps.least() * 1e-6, static_cast<double>(bench.batch()) / f.seconds(),
    f.flops_per_s() * 1e-9, 100 * f.flops_per_s() / f.machine.flops_per_s,
    f.machine.flops_per_s * 1e-9, f.attainable_s() * 1e3,
    100 * f.attainable_s() / f.seconds(),
    static_cast<double>(f.grown_bytes) * 1e-6);
}

std::uint64_t parse_steps(const std::string& text) {
  std::uint64_t steps = 0;
  const auto* end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, steps);
  if (parsed.ec != std::errc{} || parsed.ptr != end || steps == 0
      || static_cast<double>(steps) > most_timed_steps)
    throw error(errc::invalid_argument,
                "a turn is a number of steps, not " + quoted_name(text));
  return steps;
}

/// Prints a line of JSON and flushes it.
void answer(const nlohmann::ordered_json& line) {
  std::printf("%s\n", line.dump().c_str());
  std::fflush(stdout);
}

/// Each line of standard input is a number of steps. Runs them and answers with
/// a line of JSON.
void take_turns(training_bench& bench, std::uint64_t memory_at_start) {
  answer({{"peer", "troupe " TROUPE_VERSION}});
  for (std::string line; std::getline(std::cin, line);) {
    const auto done = bench.run(parse_steps(line));
    answer({{"ms", done.ms},
            {"losses", done.losses},
            {"grown_bytes", grown_since(memory_at_start)}});
  }
}

int run_bench_train(const train_bench_options& o) {
  const auto memory_at_start = resident_bytes();
  choose_workers(o.training.network.threads);
  const output_place start{"--save-start", o.save_start};
  require_places_of_their_own({&start, 1}, {&o.training.network.program, 1},
                              "");
  training_bench bench(o.training);
  if (!o.save_start.empty())
    bench.write_start(o.save_start);
  if (o.turns) {
    take_turns(bench, memory_at_start);
    return 0;
  }
  const auto figures = measure(o, bench, memory_at_start);
  o.json ? print_json(o, bench, figures) : print_text(o, bench, figures);
  return 0;
}

void add_length_options(CLI::App& command, train_bench_options& o) {
  command
    .add_option("--batch", o.training.batch,
                "samples per step, over all devices")
    ->check(batch_size());
  command
    .add_option("--steps", o.steps,
                "number of timed steps (default: as many as run in 3 seconds)")
    ->check(positive(most_timed_steps));
  command
    .add_option("--warm-up", o.warm_up, "untimed steps before the timed ones")
    ->check(not_negative(most_timed_steps))
    ->capture_default_str();
  command
    .add_option("--in-flight", o.training.in_flight, "steps that may overlap")
    ->check(in_flight_count())
    ->capture_default_str();
}

} // namespace

void add_bench_train(CLI::App& bench, action& chosen) {
  auto o = std::make_shared<train_bench_options>();
  auto& command =
    *bench.add_subcommand("train", "time of a training step, compared with "
                                   "what the machine can reach");
  auto& network = o->training.network;
  add_program_argument(command, network);
  add_device_options(command, network);
  add_strategy_options(command, network);
  add_precision_option(command, network);
  command.add_flag("--no-winograd", network.no_winograd,
                   "compute 3x3 convolutions directly, which is slower and "
                   "rounds less");
  command
    .add_option("--threads", network.threads, "workers (default: one per core)")
    ->check(thread_count());
  add_length_options(command, *o);
  command
    .add_option("--seed", o->training.seed,
                "seed of initial values and batches")
    ->check(not_negative())
    ->capture_default_str();
  command
    .add_option("--save-start", o->save_start,
                "write initial values and batches as an .npz file, so that "
                "other programs can do the same work")
    ->check(not_empty());
  command.add_flag(
    "--turns", o->turns,
    "read numbers of steps from standard input, line by line; run "
    "them and answer with a line of JSON");
  add_output_options(command, o->json,
                     "troupe bench train lenet --devices cpu:2 --threads 2");
  command.callback(
    [o, &chosen] { chosen = [o] { return run_bench_train(*o); }; });
}

} // namespace troupe::apps
