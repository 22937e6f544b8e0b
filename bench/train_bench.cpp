// SPDX-License-Identifier: Apache-2.0
// Trains a model in two configurations in turns (A B A B ...), so that other
// load on the machine affects both equally.
#include "process_training.hpp"
#include "training.hpp"

#include <troupe/base/job_queue.hpp>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <cstdio>
#include <functional>
#include <optional>

namespace {

using namespace troupe;
using namespace troupe::bench;

struct options {
  std::string net = "lenet";
  std::int64_t batch = 0;
  training_options first{.devices = "cpu:1", .threads = 1};
  training_options second{.devices = "cpu:2", .threads = 2};
  std::string strategy = "all_reduce"; // of the second
  std::size_t processes = 1;           // of the second
  std::size_t rounds = 15;
  std::size_t steps = 20;
  bool json = false;
};

struct measurement {
  std::vector<double> first_ms, second_ms, ratios; // per round
};

/// Runs so many steps and returns the milliseconds per step.
using contender = std::function<double(std::size_t)>;

measurement measure(const options& o, const contender& first,
                    const contender& second) {
  first(o.steps); // warm-up
  second(o.steps);
  measurement m;
  for (std::size_t i = 0; i < o.rounds; ++i) {
    m.first_ms.push_back(first(o.steps));
    m.second_ms.push_back(second(o.steps));
    m.ratios.push_back(m.first_ms.back() / m.second_ms.back());
  }
  return m;
}

nlohmann::ordered_json to_json(const options& o, const measurement& m,
                               const machine& on) {
  return {{"net", o.net},
          {"batch", o.batch},
          {"devices", o.first.devices},
          {"threads", o.first.threads},
          {"vs_devices", o.second.devices},
          {"vs_threads", o.second.threads},
          {"vs_strategy", graph::to_string(o.second.strategy)},
          {"vs_processes", o.processes},
          {"steps_in_flight", o.first.steps_in_flight},
          {"rounds", o.rounds},
          {"steps", o.steps},
          {"ms", quantile(m.first_ms, 0.5)},
          {"min_ms", quantile(m.first_ms, 0)},
          {"vs_ms", quantile(m.second_ms, 0.5)},
          {"vs_min_ms", quantile(m.second_ms, 0)},
          {"ratio", quantile(m.ratios, 0.5)},
          {"ratio_low", quantile(m.ratios, 0.25)},
          {"ratio_high", quantile(m.ratios, 0.75)},
          {"ratio_of_min", quantile(m.first_ms, 0) / quantile(m.second_ms, 0)},
          {"machine",
           {{"cores", on.cores},
            {"model", on.model},
            {"avx512", on.avx512},
            {"load", on.load}}}};
}

void print_line(const std::string& devices, int threads,
                const std::vector<double>& ms) {
  std::printf("%-18s %d threads  median %9.3f ms  min %9.3f ms per step\n",
              devices.c_str(), threads, quantile(ms, 0.5), quantile(ms, 0));
}

void print(const options& o, const measurement& m, const machine& on) {
  if (o.json) {
    std::printf("%s\n", to_json(o, m, on).dump().c_str());
    return;
  }
  std::printf("%s, batch %lld, %zu cores (%s, AVX-512 %s), load %.2f\n",
              o.net.c_str(), static_cast<long long>(o.batch), on.cores,
              on.model.c_str(), on.avx512 ? "yes" : "no", on.load);
  print_line(o.first.devices, o.first.threads, m.first_ms);
  if (o.processes > 1)
    print_line(o.second.devices + ", " + std::to_string(o.processes)
                 + " processes",
               1, m.second_ms);
  else
    print_line(o.second.devices, o.second.threads, m.second_ms);
  std::printf("ratio %.3f (quartiles %.3f to %.3f), of the minima %.3f\n",
              quantile(m.ratios, 0.5), quantile(m.ratios, 0.25),
              quantile(m.ratios, 0.75),
              quantile(m.first_ms, 0) / quantile(m.second_ms, 0));
}

void add_options(CLI::App& app, options& o) {
  app.add_option("--net", o.net, "a built-in model");
  app.add_option("--batch", o.batch,
                 "samples over all devices; default: the "
                 "model's");
  app.add_option("--devices", o.first.devices, "first configuration");
  app.add_option("--threads", o.first.threads, "its workers, 0: one per core");
  app.add_option("--vs-devices", o.second.devices, "second configuration");
  app.add_option("--vs-threads", o.second.threads, "its workers");
  app
    .add_option("--vs-strategy", o.strategy,
                "how it merges gradients: all_reduce (default), reduce, "
                "replicate")
    ->check(CLI::IsMember({"all_reduce", "reduce", "replicate"}));
  app
    .add_option("--vs-processes", o.processes,
                "processes of the second configuration, one core each")
    ->check(CLI::PositiveNumber);
  app
    .add_option("--in-flight", o.first.steps_in_flight,
                "steps that may overlap")
    ->check(CLI::PositiveNumber);
  app.add_option("--rounds", o.rounds, "turns of which medians are taken")
    ->check(CLI::PositiveNumber);
  app.add_option("--steps", o.steps, "steps in a turn")
    ->check(CLI::PositiveNumber);
  app.add_flag("--json", o.json, "one JSON object");
}

void run(options& o) {
  const auto net = graph::build_model(o.net);
  if (o.batch == 0)
    o.batch = net.batch;
  o.second.steps_in_flight = o.first.steps_in_flight;
  o.second.strategy = graph::parse_merge_strategy(o.strategy);
  if (o.batch < static_cast<std::int64_t>(o.processes))
    throw error(errc::invalid_argument, "--batch " + std::to_string(o.batch)
                                          + ": each process needs a sample");
  if (parse_devices(o.second.devices).size() < o.processes)
    throw error(errc::invalid_argument,
                "--vs-processes " + std::to_string(o.processes)
                  + ": each process needs a device of --vs-devices");
  arena memory{make_host_memory_source()};
  const auto batches = random_batches(net, o.batch, 4, memory);
  const auto trains = [&batches](training& by) {
    return [&](std::size_t steps) { return by.run(batches, steps); };
  };
  if (o.processes > 1) {
    process_training second{net, o.second, o.processes, o.batch};
    training first{net, o.first};
    second.connect();
    return print(o,
                 measure(o, trains(first),
                         [&](std::size_t steps) { return second.run(steps); }),
                 this_machine());
  }
  training first{net, o.first};
  training second{net, o.second};
  print(o, measure(o, trains(first), trains(second)), this_machine());
}

} // namespace

int main(int argc, char** argv) {
  options o;
  CLI::App app{"Steps of a model in two configurations, in turns; ratio is "
               "first over second, of each round.\n"
               "Example: train_bench --net lenet --batch 64 --json"};
  add_options(app, o);
  CLI11_PARSE(app, argc, argv);
  try {
    run(o);
  } catch (const error& e) {
    std::fprintf(stderr, "train_bench: %s\n", e.what());
    return 1;
  }
}
