// SPDX-License-Identifier: Apache-2.0
#include <troupe/apps/bench/bench_commands.hpp>
#include <troupe/apps/bench/latency_probes.hpp>
#include <troupe/apps/common_options.hpp>
#include <troupe/apps/option_checks.hpp>
#include <troupe/base/clock.hpp>
#include <troupe/base/error.hpp>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <nlohmann/json.hpp>

#include <array>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

namespace troupe::apps {

namespace {

// One second and one hour: longer measurements are not useful.
constexpr double longest_us = 1e6, longest_s = 3600;
constexpr double most_rounds = 1e7;

struct latency_options {
  std::string gaps_us = "0,1,10,100,1000";
  std::string ops_us = "100,10";
  std::size_t rounds = 1200;
  std::size_t steps = 101;
  double idle_s = 1;
  bool json = false;
};

/// Prints a line of figures, as JSON or as text.
void print(const latency_options& o, const nlohmann::ordered_json& line,
           const char* text, const std::vector<double>& figures) {
  if (o.json) {
    std::printf("%s\n", line.dump().c_str());
    return;
  }
  std::string out = text;
  for (auto f : figures) {
    std::array<char, 40> number{};
    std::snprintf(number.data(), number.size(), "%.3f", f);
    out.replace(out.find('#'), 1, number.data());
  }
  std::puts(out.c_str());
}

void print_handoff(const latency_options& o, double gap_us) {
  const auto gap = static_cast<std::uint64_t>(gap_us * ns_per_us);
  const auto least = handshake_times(o.rounds, gap);
  const auto ours = handoff_times(o.rounds, gap);
  const auto us = ours.median() / ns_per_us;
  const auto p99 = ours.quantile(0.99) / ns_per_us;
  const auto least_us = least.median() / ns_per_us;
  const auto least_p99 = least.quantile(0.99) / ns_per_us;
  print(o,
        {{"what", "handoff"},
         {"gap_us", gap_us},
         {"us", us},
         {"p99_us", p99},
         {"handshake_us", least_us},
         {"handshake_p99_us", least_p99}},
        "ready to running on a worker idle for # us: # us (99 %: #), spin "
        "handshake # us (#)",
        {gap_us, us, p99, least_us, least_p99});
}

void print_levels(const latency_options& o, const level_net& net) {
  const auto steps = level_times(net, o.steps, nullptr);
  const auto op_us = static_cast<double>(net.op_ns) / ns_per_us;
  print(o,
        {{"what", "levels"},
         {"system", "own"},
         {"op_us", op_us},
         {"ms", steps.median() / ns_per_ms},
         {"min_ms", steps.least() / ns_per_ms},
         {"ideal_ms", net.ideal_ns() / ns_per_ms}},
        "20 levels of two ops of # us: # ms (least #), ideal #",
        {op_us, steps.median() / ns_per_ms, steps.least() / ns_per_ms,
         net.ideal_ns() / ns_per_ms});
}

void print_shared(const latency_options& o, const level_net& net) {
  const auto times = shared_system(net, o.steps);
  const auto op_us = static_cast<double>(net.op_ns) / ns_per_us;
  print(o,
        {{"what", "levels"},
         {"system", "application"},
         {"op_us", op_us},
         {"ms", times.steps.median() / ns_per_ms},
         {"min_ms", times.steps.least() / ns_per_ms},
         {"ideal_ms", net.ideal_ns() / ns_per_ms},
         {"request_us", times.requests.median() / ns_per_us},
         {"request_p90_us", times.requests.quantile(0.9) / ns_per_us},
         {"idle_request_us", times.idle_requests.median() / ns_per_us}},
        "the same in an application's system, # us: # ms; its requests # us "
        "(90 %: #), without steps #",
        {op_us, times.steps.median() / ns_per_ms,
         times.requests.median() / ns_per_us,
         times.requests.quantile(0.9) / ns_per_us,
         times.idle_requests.median() / ns_per_us});
}

int run_latency(const latency_options& o) {
  if (choose_workers(0) < 2)
    throw error(errc::invalid_argument, "bench latency needs two cores");
  for (auto gap : parse_numbers(o.gaps_us))
    print_handoff(o, gap);
  for (auto us : parse_numbers(o.ops_us)) {
    const level_net net{.op_ns = static_cast<std::uint64_t>(us * ns_per_us)};
    print_levels(o, net);
    print_shared(o, net);
  }
  const auto idle =
    100 * idle_share(static_cast<std::uint64_t>(o.idle_s * 1e9));
  print(o, {{"what", "idle"}, {"cpu_percent", idle}},
        "between steps the process takes # % of a core", {idle});
  return 0;
}

} // namespace

void add_bench_latency(CLI::App& bench, action& chosen) {
  auto o = std::make_shared<latency_options>();
  auto& command = *bench.add_subcommand(
    "latency", "how soon a ready op runs on another worker");
  add_list_option(command, "--gap-us", o->gaps_us,
                  "idle time of the other worker before a hand-off")
    ->type_name("FLOAT,...")
    ->check(number_list(not_negative(longest_us)));
  add_list_option(command, "--op-us", o->ops_us,
                  "op duration, in a graph of 20 levels with two ops each")
    ->type_name("FLOAT,...")
    ->check(number_list(from_to(0.001, longest_us)));
  command.add_option("--rounds", o->rounds, "hand-offs per gap")
    ->check(positive(most_rounds))
    ->capture_default_str();
  command.add_option("--steps", o->steps, "number of steps of that graph")
    ->check(positive(most_rounds))
    ->capture_default_str();
  command
    .add_option("--idle-s", o->idle_s, "seconds to observe the idle process")
    ->check(from_to(0.001, longest_s))
    ->capture_default_str();
  add_output_options(command, o->json, "troupe bench latency --gap-us 0,10");
  command.callback([o, &chosen] { chosen = [o] { return run_latency(*o); }; });
}

} // namespace troupe::apps
