// SPDX-License-Identifier: Apache-2.0
#include <troupe/apps/bench/bench_commands.hpp>
#include <troupe/apps/common_options.hpp>
#include <troupe/apps/option_checks.hpp>
#include <troupe/apps/usage_error.hpp>
#include <troupe/base/error.hpp>
#include <troupe/comm/letter.hpp>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
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
std::string bytes_of_list(const std::string& list) {
  constexpr std::size_t most = std::size_t{16} << 30;
  std::string all;
  for (const std::string& text : split_list(list)) {
    auto number = text;
    if (const auto why = memory_size()(number); !why.empty())
      throw usage_error("--bytes " + why);
    const auto bytes = std::stoull(number);
    if (bytes > most || bytes % sizeof(float) != 0)
      throw usage_error("--bytes " + text
                        + ": expected a multiple of 4, at most 16 GiB");
    all += (all.empty() ? "" : ",") + std::to_string(bytes);
  }
  return all;
}

void check_engines(const std::string& list) {
  for (const std::string& name : distinct_names(list, "--engines"))
    if (name != "shm" && name != "gloo" && name != "mpi")
      throw usage_error("--engines: there is no engine '" + name
                        + "'; engines are shm, gloo and mpi");
}

/// Becomes the program that measures, which lies beside this one. Only it loads
/// the libraries of the engines: they take addresses, and time at each start.
int run_comm(const comm_options& o) {
  const auto sizes = bytes_of_list(o.bytes);
  check_engines(o.engines);
  const auto program =
    std::filesystem::read_symlink("/proc/self/exe").parent_path()
    / "troupe-bench-comm";
  const std::string words[] = {program.string(),
                               std::to_string(o.processes),
                               sizes,
                               std::to_string(o.rounds),
                               o.engines,
                               o.json ? "json" : "text"};
  std::vector<char*> arguments;
  for (auto& word : words)
    arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  std::fflush(nullptr);
  ::execv(arguments[0], arguments.data()); // continues here on failure
  throw error(errc::io_failure,
              program.string() + ": " + std::system_category().message(errno));
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
