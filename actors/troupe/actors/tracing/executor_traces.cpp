// SPDX-License-Identifier: Apache-2.0
#include <troupe/actors/tracing/executor_traces.hpp>

#include <troupe/actors/engine/engine.hpp>
#include <troupe/actors/tracing/traced_graph.hpp>
#include <troupe/actors/tracing/worker_stacks.hpp>
#include <troupe/base/clock_pair.hpp>
#include <troupe/base/error.hpp>
#include <troupe/base/event_reader.hpp>
#include <troupe/base/version.hpp>
#include <troupe/kernels/memory/address_space.hpp>

#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <system_error>
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

/// If addresses are few, the run needs them itself.
std::size_t events_per_ring() {
  constexpr std::size_t few = std::size_t{1} << 15;
  return address_limit() == SIZE_MAX ? recorder::default_events_per_ring : few;
}

/// "troupe-1234.trt" of process 1234.
std::filesystem::path usual_file() {
  return "troupe-" + std::to_string(::getpid()) + ".trt";
}

/// "run-2.trt" for "run.trt".
std::filesystem::path numbered(const std::filesystem::path& file, int number) {
  auto name = file.stem();
  name += "-" + std::to_string(number);
  name += file.extension();
  return file.parent_path() / name;
}

bool is_there(const std::filesystem::path& file) {
  std::error_code unknown;
  return std::filesystem::exists(
    std::filesystem::symlink_status(file, unknown));
}

} // namespace

executor_traces::executor_traces(const executor_options& options,
                                 const graph::program& p,
                                 const job_queue& queue)
  : options_(options), program_(p), queue_(queue),
    made_(trace::clock_reading::now()), made_unix_ns_(unix_ns_at(made_.ns)),
    events_(std::make_shared<recorder>(queue, events_per_ring())),
    hooks_(*events_, options.hooks.trace), flight_(*events_, trace_level::off),
    busy_(options.flight_recorder.stacks
            ? std::make_unique<busy_workers>(queue.workers())
            : nullptr),
    core_waits_(queue, *events_) {
  try {
    flight_.change(options.flight_recorder.level);
  } catch (const std::bad_alloc&) {
    // Training matters more than a record of it.
  }
}

executor_traces::~executor_traces() = default;

/// The file of this process, if `file` is that of process 0.
std::filesystem::path
executor_traces::own(const std::filesystem::path& file) const {
  return trace_file_of(file, options_.nodes ? options_.nodes->process : 0);
}

/// A file that is not there yet: "run.trt", "run-1.trt", ...
/// @param first 1: the first one has a number, too
trace::trace_writer
executor_traces::new_file(const std::filesystem::path& wanted,
                          int first) const {
  static std::mutex one_at_a_time; // two executors can want the same name
  std::lock_guard guard{one_at_a_time};
  for (int number = first;; ++number) {
    const auto file = own(number == 0 ? wanted : numbered(wanted, number));
    if (!is_there(file))
      return trace::trace_writer{file, trace::trace_writer::existing::refused};
  }
}

trace_recording::subject
executor_traces::subject_of(const trace_options& wanted,
                            const trace::phase_log& before, trace_level level,
                            const graph::ssa_graph& g) const {
  trace_recording::subject what;
  auto& run = what.run;
  run.version = TROUPE_VERSION;
  run.command =
    wanted.command.empty() ? program_invocation_short_name : wanted.command;
  run.job = wanted.job;
  run.host = name_of_host();
  run.pid = static_cast<std::uint64_t>(::getpid());
  run.workers = queue_.workers();
  run.strategy = to_string(options_.strategy);
  run.level = level;
  std::vector<std::size_t> process_of_device;
  if (options_.nodes) {
    run.process = options_.nodes->process;
    run.processes = options_.nodes->processes();
    process_of_device = options_.nodes->process_of_device;
  }
  what.graph = traced_graph(g, program_.main(), process_of_device);
  for (handle_id id = 0; id < what.graph.handles.size(); ++id)
    if (runs_->has(id))
      what.graph.handles[id].messages = runs_->messages_to(id);
  what.phases = before;
  what.phases.append(phases_);
  return what;
}

void executor_traces::step_ended(step_id step, std::uint64_t begin_ns,
                                 std::uint64_t end_ns) noexcept {
  core_waits_.step_ended(step);
  if (std::exchange(has_ended_step_, true))
    return;
  try {
    trace::phase_log first;
    first.add("first step", begin_ns, end_ns);
    std::lock_guard guard{mutex_};
    phases_.append(first);
    if (recording_)
      recording_->add(first);
  } catch (const std::bad_alloc&) {
    // Training matters more than a record of it.
  }
}

trace::process_trace executor_traces::head(const graph::ssa_graph& g) const {
  std::lock_guard guard{mutex_};
  auto what = subject_of(wanted_, {}, events_->level(), g);
  trace::process_trace made;
  made.run = std::move(what.run);
  made.graph = std::move(what.graph);
  return made;
}

void executor_traces::begin(const graph::ssa_graph& g, const engine& runs,
                            const trace::phase_log& made) {
  runs_ = &runs;
  phases_ = made;
  wanted_ = wanted_trace(options_);
  if (!wanted_.file.empty())
    start(wanted_, g);
}

std::filesystem::path executor_traces::start(const trace_options& wanted,
                                             const graph::ssa_graph& g) {
  std::lock_guard guard{mutex_};
  if (recording_)
    throw error(errc::invalid_argument,
                "a trace is being written to " + recorded_file_.string());
  auto file = wanted.file.empty()
                ? new_file(usual_file(), 0)
                : trace::trace_writer{
                  own(wanted.file), wanted.replaces
                                      ? trace::trace_writer::existing::replaced
                                      : trace::trace_writer::existing::refused};
  recorded_file_ = file.path();
  recording_ = std::make_unique<trace_recording>(
    *options_.system, *events_, wanted.level, std::move(file),
    subject_of(wanted, wanted.before, wanted.level, g));
  return recorded_file_;
}

void executor_traces::end() {
  std::lock_guard guard{mutex_};
  recording_.reset();
}

std::optional<std::filesystem::path> executor_traces::stop() {
  std::lock_guard guard{mutex_};
  if (!recording_)
    return std::nullopt;
  const auto why = recording_->end();
  recording_.reset();
  if (why)
    throw error(errc::io_failure, "the trace ends early: " + *why);
  return recorded_file_;
}

std::optional<std::string> executor_traces::failure() const {
  std::lock_guard guard{mutex_};
  return recording_ ? recording_->failure() : std::nullopt;
}

std::vector<trace::worker_stack> executor_traces::stacks() const {
  return busy_ ? stacks_of(*busy_, *options_.flight_recorder.stacks, *events_,
                           made_.ns)
               : std::vector<trace::worker_stack>{};
}

std::filesystem::path executor_traces::dump(const std::filesystem::path& file,
                                            const graph::ssa_graph& g) const {
  const auto stacks_now = stacks(); // before what runs has ended
  const std::filesystem::path named = options_.flight_recorder.file;
  auto out = file.empty() ? new_file(named.empty() ? usual_file() : named, 1)
                          : trace::trace_writer{own(file)};
  auto what = [&] {
    std::lock_guard guard{mutex_};
    return subject_of(wanted_, wanted_.before, events_->level(), g);
  }();
  what.run.begin_unix_ns = made_unix_ns_;
  out.write(what.run);
  out.write(what.graph);
  out.write(what.phases.since(made_.ns));
  event_reader all{*events_, event_reader::start::oldest};
  const auto events = all.take();
  out.write(events_->actors().since(0), made_.ns);
  out.write(events, all.lost(), made_, trace::clock_reading::now(), made_.ns);
  if (!stacks_now.empty())
    out.write(stacks_now);
  out.close();
  return out.path();
}

} // namespace actors

} // namespace troupe
