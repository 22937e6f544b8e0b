// SPDX-License-Identifier: Apache-2.0

#include <troupe/apps/bench/comm_measurement.hpp>

#include <troupe/actors/remote/run_pass.hpp>
#include <troupe/apps/bench/comm_probe.hpp>

#include <nlohmann/json.hpp>

#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

namespace troupe::apps {

namespace {

/// "64 MiB", or in bytes.
std::string size_text(std::size_t bytes) {
  const char* units[] = {" B", " KiB", " MiB", " GiB"};
  std::size_t unit = 0;
  for (; unit < 3 && bytes >= 1024 && bytes % 1024 == 0; ++unit)
    bytes /= 1024;
  return std::to_string(bytes) + units[unit];
}

/// A private folder in which the processes meet; the first one makes and
/// removes it. Processes that MPI has started find it by their parent's number.
class comm_folder {
public:
  comm_folder(const launched_place& launched)
    : path_(
      std::filesystem::path{actors::run_folder("")}
      / ("bench-comm-"
         + std::to_string(launched.is_launched ? ::getppid() : ::getpid()))),
      is_own_(launched.process == 0) {
    std::filesystem::create_directory(path_);
    std::filesystem::permissions(path_, std::filesystem::perms::owner_all);
  }
  ~comm_folder() {
    std::error_code ignored;
    if (is_own_)
      std::filesystem::remove_all(path_, ignored);
  }
  comm_folder(const comm_folder&) = delete;
  comm_folder& operator=(const comm_folder&) = delete;
  std::string path() const { return path_.string(); }

private:
  std::filesystem::path path_;
  bool is_own_;
};

/// Times by engine and size; nothing for an engine that cannot be measured.
using comm_times = std::vector<std::optional<std::vector<double>>>;

comm_times measure_engines(const std::vector<probe_engine>& engines,
                           const probe_place& at, const probe_plan& plan,
                           const std::function<void()>& check) {
  comm_times times;
  for (auto& engine : engines)
    if (engine.missing.empty())
      times.emplace_back(measure_sums(engine, at, plan, check));
    else
      times.emplace_back(std::nullopt);
  return times;
}

double gb_per_s(std::size_t bytes, double us) {
  return static_cast<double>(bytes) / us * 1e-3;
}

void print_comm_json(const std::vector<probe_engine>& engines,
                     const std::vector<std::size_t>& sizes,
                     std::size_t processes, const comm_times& times) {
  for (std::size_t e = 0; e < engines.size(); ++e) {
    nlohmann::ordered_json line{{"engine", engines[e].name},
                                {"processes", processes}};
    if (!times[e]) {
      line["missing"] = engines[e].missing;
      std::printf("%s\n", line.dump().c_str());
      continue;
    }
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      const auto us = (*times[e])[i];
      line["bytes"] = sizes[i];
      line["us"] = us;
      line["gb_per_s"] = gb_per_s(sizes[i], us);
      std::printf("%s\n", line.dump().c_str());
    }
  }
}

void print_comm_text(const std::vector<probe_engine>& engines,
                     const std::vector<std::size_t>& sizes,
                     std::size_t processes, const comm_times& times) {
  std::printf("all_reduce of float32 between %zu processes\n%-10s", processes,
              "bytes");
  for (auto& engine : engines)
    std::printf("  %25s", engine.name.c_str());
  std::puts("");
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    std::printf("%-10s", size_text(sizes[i]).c_str());
    for (auto& of_engine : times)
      if (!of_engine)
        std::printf("  %25s", "-");
      else
        std::printf("  %10.1f us %7.2f GB/s", (*of_engine)[i],
                    gb_per_s(sizes[i], (*of_engine)[i]));
    std::puts("");
  }
  for (auto& engine : engines)
    if (!engine.missing.empty())
      std::printf("%s: %s\n", engine.name.c_str(), engine.missing.c_str());
}

/// Ctrl-C on a terminal reaches all processes; one of them tells so.
void end_quietly() {
  for (int signal : {SIGINT, SIGTERM})
    std::signal(signal, SIG_DFL);
}

} // namespace

void measure_comm(const comm_plan& wanted) {
  const auto launched = place_under_mpi();
  const auto processes =
    launched.is_launched ? launched.processes : wanted.processes;
  const probe_plan plan{wanted.bytes, wanted.rounds};
  std::vector<probe_engine> engines;
  for (auto& name : wanted.engines)
    engines.push_back(find_engine(name, launched.is_launched, processes));
  const comm_folder folder{launched};
  probe_place at{launched.process, processes, folder.path()};
  probe_children children{launched.is_launched ? 1 : processes,
                          [&](std::size_t process) {
                            end_quietly();
                            at.process = process;
                            measure_engines(engines, at, plan, [] {});
                          }};
  const auto times =
    measure_engines(engines, at, plan, [&children] { children.check(); });
  children.wait();
  if (at.process == 0)
    (wanted.json ? print_comm_json : print_comm_text)(engines, plan.bytes,
                                                      processes, times);
}

} // namespace troupe::apps
