// SPDX-License-Identifier: Apache-2.0
#include <troupe/actors/tracing/trace_start.hpp>

#include <troupe/actors/tracing/traced_graph.hpp>

#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <optional>
#include <string>
#include <utility>

namespace troupe {

std::filesystem::path trace_file_of(const std::filesystem::path& file,
                                    std::size_t process) {
  if (process == 0)
    return file;
  auto name = file.stem();
  name += "." + std::to_string(process);
  name += file.extension();
  return file.parent_path() / name;
}

namespace actors {

namespace {

/// Empty: no trace. The file of the environment is for the first executor of
/// the process that asks: a second one would replace it.
trace_options wanted_trace(const executor_options& options) {
  static std::atomic_flag is_taken;
  if (options.trace)
    return *options.trace;
  trace_options from_environment;
  if (const auto* file = std::getenv("TROUPE_TRACE");
      file && *file != '\0' && !is_taken.test_and_set())
    from_environment.file = file;
  return from_environment;
}

std::string name_of_host() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

} // namespace

std::unique_ptr<trace_recording>
start_trace(const executor_options& options, const graph::program& p,
            const graph::ssa_graph& g, recorder& from, std::size_t workers,
            const trace::phase_log& made) {
  const auto wanted = wanted_trace(options);
  if (wanted.file.empty())
    return nullptr;
  trace_recording::subject what;
  auto& run = what.run;
  run.version = TROUPE_VERSION;
  run.command = wanted.command;
  run.host = name_of_host();
  run.pid = static_cast<std::uint64_t>(::getpid());
  run.workers = workers;
  run.strategy = to_string(options.strategy);
  run.level = wanted.level;
  std::vector<std::size_t> process_of_device;
  if (options.nodes) {
    run.process = options.nodes->process;
    run.processes = options.nodes->processes();
    process_of_device = options.nodes->process_of_device;
  }
  what.graph = traced_graph(g, p.main(), process_of_device);
  what.phases = wanted.before;
  what.phases.append(made);
  return std::make_unique<trace_recording>(
    *options.system, from, wanted.level,
    trace_file_of(wanted.file, run.process), std::move(what));
}

} // namespace actors

} // namespace troupe
