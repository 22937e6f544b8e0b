// SPDX-License-Identifier: Apache-2.0
#include <troupe/actors/backend/backend.hpp>
#include <troupe/apps/bench/bench_commands.hpp>
#include <troupe/apps/bench/ready_queue_executor.hpp>
#include <troupe/apps/bench/sampling.hpp>
#include <troupe/apps/common_options.hpp>
#include <troupe/apps/data/samples.hpp>
#include <troupe/apps/option_checks.hpp>
#include <troupe/apps/results/json_text.hpp>
#include <troupe/apps/usage_error.hpp>
#include <troupe/base/clock.hpp>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <nlohmann/json.hpp>

#include <array>
#include <cstdio>
#include <functional>
#include <memory>
#include <string_view>

namespace troupe::apps {

namespace {

struct steps_options {
  network_options network;
  data_options data;
  std::string engines = "troupe,ready_queue";
  int repeat = 15;
  double sample_ms = 100;
  bool json = false;
};

/// Runs a step and returns its loss.
using step_runner = std::function<double(const feed_map&)>;

struct started_engine {
  step_runner step;
  std::size_t ops; ///< op handles of its graph
};

using shared_program = std::shared_ptr<const graph::program>;

started_engine start_troupe(const shared_program& main,
                            const executor_options& options) {
  auto exe = std::make_shared<executor>(main, options);
  auto result = std::make_shared<step_result>();
  const auto step = [exe, result](const feed_map& feeds) {
    exe->wait(exe->submit(feeds), *result);
    return result->loss;
  };
  return {step, exe->stats().op_actors};
}

started_engine start_ready_queue(const shared_program& main,
                                 const executor_options& options) {
  auto exe = std::make_shared<ready_queue_executor>(main, options);
  return {[exe](const feed_map& feeds) { return exe->run(feeds); }, exe->ops()};
}

struct step_engine {
  std::string_view name;
  started_engine (*start)(const shared_program&, const executor_options&);
};

constexpr std::array<step_engine, 2> engines{
  {{"troupe", start_troupe}, {"ready_queue", start_ready_queue}}};

const step_engine& find_engine(const std::string& name) {
  for (auto& e : engines)
    if (e.name == name)
      return e;
  throw usage_error("--engine: no such engine: " + name);
}

/// An engine that trains from the same initial values and on the same batches
/// as the others.
class trainee {
public:
  trainee(const step_engine& engine, const program_bundle& bundle,
          const shared_program& main, executor_options options,
          batch_source& batches)
    : name_(engine.name), batches_(batches) {
    options.parameters = std::make_shared<scope>();
    run_startup(bundle.startup, *options.parameters, options.seed);
    engine_ = engine.start(main, options);
    step(); // warm-up
    step();
  }

  const std::string& name() const { return name_; }
  const samples& steps() const { return steps_; }
  std::size_t ops() const { return engine_.ops; }
  /// The loss of the second step. It is equal for engines that compute the same
  /// values.
  double early_loss() const { return early_loss_; }

  void sample(double at_least_ms) {
    steps_.add(time_of([this] { step(); }, at_least_ms * ns_per_ms));
  }

private:
  void step() {
    const auto loss =
      engine_.step(batches_.batch(0, run_ % batches_.steps_per_epoch()));
    if (++run_ == 2)
      early_loss_ = loss;
  }

  std::string name_;
  batch_source& batches_;
  started_engine engine_;
  std::uint64_t run_ = 0;
  double early_loss_ = 0;
  samples steps_;
};

void print(const steps_options& o, int threads,
           const std::vector<std::unique_ptr<trainee>>& all) {
  const auto first = all.front()->steps().median();
  for (auto& t : all) {
    const auto& s = t->steps();
    const auto ratio = s.median() / first;
    if (!o.json) {
      std::printf("%-12s %9.4f ms (least %.4f), %.3f x %s, loss %.9g\n",
                  t->name().c_str(), s.median() / ns_per_ms,
                  s.least() / ns_per_ms, ratio, all.front()->name().c_str(),
                  t->early_loss());
      continue;
    }
    nlohmann::ordered_json line;
    line["program"] = o.network.program;
    line["devices"] = o.network.devices;
    line["threads"] = threads;
    line["engine"] = t->name();
    line["ops"] = t->ops();
    line["ms"] = s.median() / ns_per_ms;
    line["min_ms"] = s.least() / ns_per_ms;
    line["low_ms"] = s.quantile(0.25) / ns_per_ms;
    line["high_ms"] = s.quantile(0.75) / ns_per_ms;
    line["ratio"] = ratio;
    line["loss"] = t->early_loss();
    std::printf("%s\n", json_text(line).c_str());
  }
}

/// Samples the engines in turns, so that other load on the machine affects all
/// of them equally.
int run_steps(const steps_options& o) {
  auto bundle = load_program(o.network.program, o.network.loss);
  auto options = make_executor_options(o.network);
  options.loss = require_loss(bundle);
  options.lowering.kernel_layouts = false; // other engines use plain layouts
  options.threads = choose_workers(options.threads);
  options.kernels =
    std::make_shared<const kernel_table>(kernels_for(options.devices));
  const auto main =
    std::make_shared<const graph::program>(std::move(bundle.main));
  arena memory{make_host_memory_source()};
  const auto batches = make_synthetic_source(
    bundle.feeds, choose_batch(o.data, bundle), options.seed, memory);
  std::vector<std::unique_ptr<trainee>> all;
  for (auto& name : distinct_names(o.engines, "--engine"))
    all.push_back(std::make_unique<trainee>(find_engine(name), bundle, main,
                                            options, *batches));
  for (int i = 0; i < o.repeat; ++i)
    for (auto& t : all)
      t->sample(o.sample_ms);
  print(o, options.threads, all);
  return 0;
}

} // namespace

void add_bench_steps(CLI::App& bench, action& chosen) {
  auto o = std::make_shared<steps_options>();
  o->network.devices = "cpu:1";
  auto& command = *bench.add_subcommand(
    "steps", "compare training steps on actors with a shared ready queue "
             "running the same kernels");
  add_program_argument(command, o->network);
  command
    .add_option("--threads", o->network.threads,
                "workers (default: one per core)")
    ->check(thread_count());
  command.add_option("--batch", o->data.batch, "samples per step")
    ->check(batch_size());
  add_list_option(command, "--engine", o->engines,
                  "troupe (the actors), ready_queue (Paddle's algorithm); "
                  "ratios are relative to the first")
    ->check(name_list());
  command.add_option("--repeat", o->repeat, "samples per engine, in turns")
    ->check(repeat_count())
    ->capture_default_str();
  command.add_option("--sample-ms", o->sample_ms, "minimum length of a sample")
    ->check(sample_length())
    ->capture_default_str();
  add_output_options(command, o->json, "troupe bench steps mlp --threads 2");
  command.callback([o, &chosen] { chosen = [o] { return run_steps(*o); }; });
}

} // namespace troupe::apps
