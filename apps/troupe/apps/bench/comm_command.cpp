// SPDX-License-Identifier: Apache-2.0
#include <troupe/apps/bench/bench_commands.hpp>
#include <troupe/apps/bench/comm_measurement.hpp>
#include <troupe/apps/common_options.hpp>
#include <troupe/apps/option_checks.hpp>
#include <troupe/apps/usage_error.hpp>
#include <troupe/comm/letter.hpp>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>

#include <memory>
#include <string>
#include <vector>

namespace troupe::apps {

namespace {

constexpr double most_processes = comm::max_ranks;
constexpr double most_comm_rounds = 1e6;

struct comm_options {
  std::string bytes = "1KiB,64KiB,4MiB,64MiB";
  std::string engines = "shm,gloo,mpi";
  std::size_t processes = 2;
  std::size_t rounds = 11;
  bool json = false;
};

/// The sizes in bytes. Throws usage_error.
std::vector<std::size_t> bytes_of_list(const std::string& list) {
  constexpr std::size_t most = std::size_t{16} << 30;
  std::vector<std::size_t> all;
  for (const std::string& text : split_list(list)) {
    auto number = text;
    if (const auto why = memory_size()(number); !why.empty())
      throw usage_error("--bytes " + why);
    const auto bytes = std::stoull(number);
    if (bytes > most || bytes % sizeof(float) != 0)
      throw usage_error("--bytes " + text
                        + ": expected a multiple of 4, at most 16 GiB");
    all.push_back(bytes);
  }
  return all;
}

/// Throws usage_error.
std::vector<std::string> engines_of_list(const std::string& list) {
  auto names = distinct_names(list, "--engines");
  for (const std::string& name : names)
    if (name != "shm" && name != "gloo" && name != "mpi")
      throw usage_error("--engines: there is no engine '" + name
                        + "'; engines are shm, gloo and mpi");
  return names;
}

int run_comm(const comm_options& o) {
  measure_comm({.processes = o.processes,
                .bytes = bytes_of_list(o.bytes),
                .rounds = o.rounds,
                .engines = engines_of_list(o.engines),
                .json = o.json});
  return 0;
}

} // namespace

void add_bench_comm(CLI::App& bench, action& chosen) {
  auto o = std::make_shared<comm_options>();
  auto& command = *bench.add_subcommand(
    "comm", "sums between processes, through each engine");
  command
    .add_option("--processes", o->processes,
                "number of processes; under mpirun, its own")
    ->check(from_to(1, most_processes))
    ->capture_default_str();
  add_list_option(command, "--bytes", o->bytes, "sizes of the tensors")
    ->type_name("SIZE,...");
  command
    .add_option("--rounds", o->rounds,
                "repetitions, of which the median is reported")
    ->check(positive(most_comm_rounds))
    ->capture_default_str();
  add_list_option(command, "--engines", o->engines, "engines to measure")
    ->type_name("NAME,...");
  add_output_options(command, o->json,
                     "troupe bench comm --bytes 1KiB,64MiB --engines shm,gloo");
  command.callback([o, &chosen] { chosen = [o] { return run_comm(*o); }; });
}

} // namespace troupe::apps
