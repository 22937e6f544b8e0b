// SPDX-License-Identifier: Apache-2.0
#include <troupe/apps/bench/bench_commands.hpp>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>

namespace troupe::apps {

void add_bench(CLI::App& app, action& chosen) {
  auto& bench = *app.add_subcommand("bench", "measure what Troupe costs");
  bench.require_subcommand(1);
  bench.footer("Example:\n  troupe bench tasks --engine all");
  add_bench_tasks(bench, chosen);
  add_bench_schedule(bench, chosen);
}

} // namespace troupe::apps
