// SPDX-License-Identifier: Apache-2.0
#include <troupe/apps/bench/bench_commands.hpp>
#include <troupe/apps/stop_request.hpp>
#include <troupe/apps/usage_error.hpp>
#include <troupe/base/cores.hpp>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>

#include <string>

namespace troupe::apps {

namespace {

/// Runs `measure`. Ctrl-C ends it at once, because engines of other libraries
/// cannot be cancelled. Complete results that were printed are kept; half a
/// measurement is not reported.
int run_until_stopped(const action& measure) {
  const stop_request stop;
  const stop_watch watch(stop, end_at_once());
  return measure();
}

} // namespace

int choose_workers(int threads) {
  const auto cores = static_cast<int>(usable_cores());
  if (threads > cores)
    throw usage_error("--threads " + std::to_string(threads)
                      + ", but this process may use " + std::to_string(cores)
                      + " cores");
  return threads == 0 ? cores : threads;
}

void add_bench(CLI::App& app, action& chosen) {
  auto& bench =
    *app.add_subcommand("bench", "measure the cost of steps, messages and ops");
  bench.require_subcommand(0, 1); // 0: as in parse_and_run
  bench.footer("Example:\n  troupe bench tasks --engine all");
  add_bench_tasks(bench, chosen);
  add_bench_schedule(bench, chosen);
  add_bench_steps(bench, chosen);
  add_bench_latency(bench, chosen);
  add_bench_inference(bench, chosen);
  add_bench_train(bench, chosen);
  add_bench_comm(bench, chosen);
  // CLI11 calls this after the callback of the subcommand.
  bench.callback([&chosen] {
    if (chosen)
      chosen = [measure = chosen] { return run_until_stopped(measure); };
  });
}

} // namespace troupe::apps
