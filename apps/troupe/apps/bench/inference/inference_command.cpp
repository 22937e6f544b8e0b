// SPDX-License-Identifier: Apache-2.0
#include <troupe/apps/bench/bench_commands.hpp>
#include <troupe/apps/bench/inference/inference_load.hpp>
#include <troupe/apps/common_options.hpp>
#include <troupe/apps/option_checks.hpp>
#include <troupe/base/clock.hpp>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <string>

namespace troupe::apps {

namespace {

constexpr double most_callers = 1e4, most_requests = 1e9;
constexpr double longest_delay_us = 1e9;
/// Of the requests; those that run alone take longer.
constexpr std::uint64_t share_alone = 8;

/// Sessions take turns, so that what else the machine does hits both.
constexpr int rounds = 5;

struct inference_options {
  network_options network;
  std::string output;
  std::string callers_are = "functions";
  inference_load load{.requests = 100'000};
  std::int64_t max_batch = 32;
  std::int64_t max_delay_us = 2000;
  bool json = false;
};

/// A session, and what was measured of it.
struct measured_session {
  std::int64_t max_batch;
  inference_load load; ///< of a round
  std::unique_ptr<inference_session> session;
  inference_figures figures;

  double requests_per_step() const {
    const auto counts = session->counts();
    return static_cast<double>(counts.requests)
           / static_cast<double>(counts.steps);
  }
};

measured_session make_session(const inference_options& o,
                              const program_bundle& bundle,
                              const known_answers& known,
                              std::int64_t max_batch, std::uint64_t requests) {
  predictor_options options;
  options.executor = make_executor_options(o.network);
  options.executor.threads = choose_workers(o.network.threads);
  options.outputs = {known.output()};
  options.max_batch = max_batch;
  options.max_delay = std::chrono::microseconds{o.max_delay_us};
  options.most_waiting = o.load.callers;
  options.example = share_batch(known.request(0, 1));
  measured_session made{max_batch, o.load, nullptr, {}};
  made.load.requests = std::max<std::uint64_t>(requests / rounds, 1);
  made.load.kind =
    o.callers_are == "threads" ? caller_kind::threads : caller_kind::functions;
  made.session = std::make_unique<inference_session>(
    bundle.test, known.parameters(), options);
  return made;
}

void print(const inference_options& o, const measured_session& s,
           const measured_session& alone) {
  const auto& f = s.figures;
  const auto us = [&](double share) {
    return f.latency.quantile(share) / ns_per_us;
  };
  const auto rate = f.per_second.median();
  const auto ratio = rate / alone.figures.per_second.median();
  if (o.json) {
    nlohmann::ordered_json line;
    line["max_batch"] = s.max_batch;
    line["max_delay_us"] = o.max_delay_us;
    line["precision"] = o.network.precision;
    line["callers"] = o.load.callers;
    line["callers_are"] = o.callers_are;
    line["requests"] = f.requests;
    line["requests_per_s"] = rate;
    line["requests_per_step"] = s.requests_per_step();
    line["p50_us"] = us(0.5);
    line["p99_us"] = us(0.99);
    line["max_us"] = us(1);
    line["wrong"] = f.wrong;
    line["ratio"] = ratio;
    std::printf("%s\n", line.dump().c_str());
    return;
  }
  std::printf(
    "max_batch %lld, max_delay %lld us, %zu %s: %.0f requests/s "
    "(%.2f times), %.1f per step; latency %.0f us, 99 %%: %.0f, "
    "most %.0f; %llu wrong replies\n",
    static_cast<long long>(s.max_batch), static_cast<long long>(o.max_delay_us),
    o.load.callers, o.callers_are.c_str(), rate, ratio, s.requests_per_step(),
    us(0.5), us(0.99), us(1), static_cast<unsigned long long>(f.wrong));
}

int run_inference(const inference_options& o) {
  const auto bundle = load_program(o.network.program, o.network.loss);
  const known_answers known{bundle, o.output, o.load.seed,
                            factors_of(o.network)};
  auto alone = make_session(o, bundle, known, 1, o.load.requests / share_alone);
  auto merged = make_session(o, bundle, known, o.max_batch, o.load.requests);
  for (int round = 0; round < rounds; ++round)
    for (auto* s : {&alone, &merged}) {
      ++s->load.seed;
      measure(s->load, known, *s->session, s->figures);
    }
  print(o, alone, alone);
  print(o, merged, alone);
  return alone.figures.wrong + merged.figures.wrong == 0 ? 0 : 1;
}

void add_load_options(CLI::App& command, inference_options& o) {
  command
    .add_option("--callers", o.load.callers,
                "how many ask at the same time, each again after its answer")
    ->check(positive(most_callers))
    ->capture_default_str();
  command
    .add_option("--callers-are", o.callers_are,
                "functions that workers call, or threads that wait")
    ->check(not_empty())
    ->check(CLI::IsMember({"functions", "threads"}))
    ->capture_default_str();
  command
    .add_option("--requests", o.load.requests,
                "requests of all callers; an eighth as many run alone")
    ->check(positive(most_requests))
    ->capture_default_str();
  command
    .add_option("--most-samples", o.load.most_samples,
                "samples of a request: a random number from 1 to this")
    ->check(from_to(1, 64))
    ->capture_default_str();
  command.add_option("--max-batch", o.max_batch, "samples of a merged step")
    ->check(batch_size())
    ->capture_default_str();
  command
    .add_option("--max-delay-us", o.max_delay_us,
                "how long a request may wait for others")
    ->check(not_negative(longest_delay_us))
    ->capture_default_str();
  command.add_option("--seed", o.load.seed, "seed of parameters and requests")
    ->check(not_negative())
    ->capture_default_str();
}

} // namespace

void add_bench_inference(CLI::App& bench, action& chosen) {
  auto o = std::make_shared<inference_options>();
  auto& command = *bench.add_subcommand(
    "inference", "requests of many callers, each alone and merged into steps");
  add_program_argument(command, o->network);
  add_device_options(command, o->network);
  add_precision_option(command, o->network);
  command
    .add_option("--threads", o->network.threads,
                "workers (default: one per core)")
    ->check(thread_count());
  command
    .add_option(
      "--output", o->output,
      "variable that is answered (default: the logits of the classes)")
    ->check(not_empty());
  add_load_options(command, *o);
  add_output_options(command, o->json, "troupe bench inference mlp");
  command.callback(
    [o, &chosen] { chosen = [o] { return run_inference(*o); }; });
}

} // namespace troupe::apps
