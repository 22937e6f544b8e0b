// SPDX-License-Identifier: Apache-2.0
#include <troupe/apps/bench/bench_commands.hpp>
#include <troupe/apps/usage_error.hpp>
#include <troupe/base/cores.hpp>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>

#include <string>

namespace troupe::apps {

int choose_workers(int threads) {
  const auto cores = static_cast<int>(usable_cores());
  if (threads > cores)
    throw usage_error("--threads " + std::to_string(threads)
                      + ", but this process may use " + std::to_string(cores)
                      + " cores");
  return threads == 0 ? cores : threads;
}

void add_bench(CLI::App& app, action& chosen) {
  auto& bench = *app.add_subcommand("bench", "measure what Troupe costs");
  bench.require_subcommand(0, 1); // as of the command itself
  bench.footer("Example:\n  troupe bench tasks --engine all");
  add_bench_tasks(bench, chosen);
  add_bench_schedule(bench, chosen);
  add_bench_steps(bench, chosen);
  add_bench_latency(bench, chosen);
  add_bench_train(bench, chosen);
}

} // namespace troupe::apps
