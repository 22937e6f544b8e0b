// SPDX-License-Identifier: Apache-2.0
#include <troupe/actors/tracing/trace_start.hpp>

#include <troupe/actors/engine/engine.hpp>
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

trace::process_trace trace_head_of(const executor_options& options,
                                   const graph::program& p,
                                   const graph::ssa_graph& g,
                                   const engine& runs, std::size_t workers) {
  trace::process_trace head;
  auto& run = head.run;
  run.version = TROUPE_VERSION;
  run.host = name_of_host();
  run.pid = static_cast<std::uint64_t>(::getpid());
  run.workers = workers;
  run.strategy = to_string(options.strategy);
  run.level = options.hooks.trace;
  std::vector<std::size_t> process_of_device;
  if (options.nodes) {
    run.process = options.nodes->process;
    run.processes = options.nodes->processes();
    process_of_device = options.nodes->process_of_device;
  }
  head.graph = traced_graph(g, p.main(), process_of_device);
  for (handle_id id = 0; id < head.graph.handles.size(); ++id)
    if (runs.has(id))
      head.graph.handles[id].messages = runs.messages_to(id);
  return head;
}

std::unique_ptr<trace_recording>
start_trace(const executor_options& options, const graph::program& p,
            const graph::ssa_graph& g, const engine& runs, recorder& from,
            std::size_t workers, const trace::phase_log& made) {
  const auto wanted = wanted_trace(options);
  if (wanted.file.empty())
    return nullptr;
  auto head = trace_head_of(options, p, g, runs, workers);
  head.run.command = wanted.command;
  head.run.level = std::max(wanted.level, options.hooks.trace);
  const auto process = head.run.process;
  trace_recording::subject what{std::move(head.run), std::move(head.graph), {}};
  what.phases = wanted.before;
  what.phases.append(made);
  return std::make_unique<trace_recording>(*options.system, from, wanted.level,
                                           trace_file_of(wanted.file, process),
                                           std::move(what));
}

} // namespace actors

} // namespace troupe
