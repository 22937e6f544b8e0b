// SPDX-License-Identifier: Apache-2.0
#include <troupe/apps/bench/bench_commands.hpp>
#include <troupe/apps/bench/delayed_run.hpp>
#include <troupe/apps/bench/sampling.hpp>
#include <troupe/apps/common_options.hpp>
#include <troupe/apps/data/samples.hpp>
#include <troupe/apps/option_checks.hpp>
#include <troupe/apps/results/json_text.hpp>
#include <troupe/apps/usage_error.hpp>
#include <troupe/base/clock.hpp>
#include <troupe/base/event_reader.hpp>
#include <troupe/base/quoted_name.hpp>
#include <troupe/base/recorder.hpp>
#include <troupe/kernels/sim/sim_device.hpp>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace troupe::apps {

namespace {

struct schedule_options {
  network_options network;
  int repeat = 7;
  double sample_ms = 50;
  std::vector<std::string> delays; ///< tables or files; empty: a dry run
  delay_kind delay = delay_kind::spin;
  /// Recording level that is compared with off, in turns.
  trace_level level = trace_level::off;
  std::size_t pending = 0; ///< number of ops treated as pending launches
  std::size_t remote = 0;  ///< number of edges that send CAF messages
  bool late = false;       ///< use devices that only queue launches
  bool json = false;
};

const std::map<std::string, delay_kind> delay_kinds{
  {"sleep", delay_kind::sleep}, {"spin", delay_kind::spin}};

const std::map<std::string, trace_level> trace_levels{
  {"off", trace_level::off},
  {"steps", trace_level::steps},
  {"ops", trace_level::ops},
  {"messages", trace_level::messages}};

/// The cost of a step in which no kernel computes.
struct schedule_figures {
  std::size_t ops = 0; ///< of the program
  std::size_t devices = 0;
  graph::merge_strategy strategy = graph::merge_strategy::all_reduce;
  std::size_t workers = 0;
  double build_ms = 0;
  double bytes = 0; ///< heap of the executor, without the program
  executor_stats stats;
  std::optional<delay_bounds> bounds; ///< only with delays
  op_delays delays;
  samples steps;
  // With the recorder at the given level; unused at level off.
  std::size_t events = 0; ///< per step
  samples recorded_steps;

  std::size_t handles() const {
    return stats.op_actors + stats.variable_actors;
  }
  double ns_per_op() const {
    return steps.median() * static_cast<double>(workers)
           / static_cast<double>(ops * devices);
  }
  double ns_per_event() const {
    return (recorded_steps.median() - steps.median())
           * static_cast<double>(workers) / static_cast<double>(events);
  }
  double ideal_ns() const { return bounds->ideal_ns(workers); }
  /// Average number of kernels that run concurrently.
  double overlap() const { return bounds->work_ns / steps.median(); }
};

/// Feeds of the right shape. No kernel reads their values.
feed_map empty_feeds(const program_bundle& bundle, std::int64_t batch,
                     arena& memory) {
  feed_map feeds;
  for (const feed_info& f : bundle.feeds) {
    std::vector<std::int64_t> dims{f.dims.begin(), f.dims.end()};
    for (auto& extent : dims)
      if (extent < 0)
        extent = &extent == dims.data() ? batch : 1;
    feeds.emplace(f.name, tensor::make(memory, shape{dims}, f.type));
  }
  return feeds;
}

void use_late_devices(executor_options& options) {
  for (auto& d : options.devices) {
    if (d.kind != device_kind::cpu)
      throw usage_error("--late: CPU devices only, not " + to_string(d));
    options.hooks.device_instances.push_back(make_sim_device(d));
  }
}

/// Throws usage_error if the graph has fewer ops or edges than `--pending` and
/// `--remote` ask for.
void require_wanted(const schedule_options& o, const executor_stats& stats) {
  const auto require = [](const char* option, std::size_t wanted,
                          std::size_t there, const char* what) {
    if (wanted > there)
      throw usage_error(std::string{option} + ": the graph has only "
                        + std::to_string(there) + what);
  };
  require("--pending", o.pending, stats.pending_ops, " ops of the program");
  require("--remote", o.remote, stats.message_edges, " edges");
}

/// Number of events that a step records at the recorder's current level.
std::size_t count_events(executor& exe, const feed_map& feeds) {
  event_reader events{exe.trace()};
  exe.run(feeds);
  return events.take().size();
}

/// Samples steps, in turns without and with the recorder.
void sample_steps(executor& exe, const feed_map& feeds,
                  const schedule_options& o, schedule_figures& figures) {
  const auto sample = [&] {
    return time_of([&] { exe.run(feeds); }, o.sample_ms * ns_per_ms);
  };
  for (int i = 0; i < o.repeat; ++i) {
    figures.steps.add(sample());
    if (o.level == trace_level::off)
      continue;
    const level_request while_sampled{exe.trace(), o.level};
    figures.recorded_steps.add(sample());
    figures.events = count_events(exe, feeds);
  }
}

schedule_figures measure(const schedule_options& o) {
  auto bundle = load_program(o.network.program, o.network.loss);
  refuse_custom_gradient_of_bench(o.network, bundle);
  auto options = make_executor_options(o.network);
  options.loss = bundle.loss;
  options.flight_recorder.level = trace_level::off;
  const auto delays = o.delays.empty() ? std::optional<delay_table>{}
                                       : delay_table::read(o.delays);
  const auto plan = std::make_shared<op_delays>();
  if (delays) {
    use_delays(options, bundle.main, *delays, o.delay, plan);
  } else {
    options.hooks.dry_run = true;
    run_ops_as_written(options);
  }
  options.hooks.pending_ops = o.pending;
  options.hooks.message_edges = o.remote;
  if (o.late)
    use_late_devices(options);
  arena memory{make_host_memory_source()};
  const auto batch = static_cast<std::int64_t>(options.devices.size());
  const auto feeds = empty_feeds(bundle, batch, memory);

  schedule_figures figures;
  figures.strategy = options.strategy;
  figures.ops = bundle.main.main().ops.size();
  figures.devices = options.devices.size();
  figures.workers = static_cast<std::size_t>(choose_workers(options.threads));
  const auto program =
    std::make_shared<const graph::program>(std::move(bundle.main));
  const auto heap = heap_bytes();
  const auto start = now_ns();
  executor exe{program, options};
  figures.build_ms = static_cast<double>(now_ns() - start) / ns_per_ms;
  figures.bytes = heap_bytes() - heap;
  require_wanted(o, exe.stats());
  if (delays) {
    figures.delays = *plan = plan_delays(exe, *delays);
    figures.bounds = bounds_of(exe.graph(), *plan);
    if (figures.bounds->work_ns == 0)
      throw usage_error("--delay: no op of the program takes time");
  }
  exe.run(feeds);
  sample_steps(exe, feeds, o, figures);
  figures.stats = exe.stats();
  return figures;
}

void print_json(const schedule_options& o, const schedule_figures& f) {
  nlohmann::ordered_json out;
  out["program"] = o.network.program;
  out["devices"] = o.network.devices;
  out["strategy"] = graph::to_string(f.strategy);
  out["threads"] = f.workers;
  out["ops"] = f.ops;
  out["op_handles"] = f.stats.op_actors;
  out["variable_handles"] = f.stats.variable_actors;
  out["messages_per_step"] = f.stats.messages_per_step;
  if (o.late)
    out["late"] = true;
  if (o.pending > 0 || o.late)
    out["pending_ops"] = f.stats.pending_ops;
  if (o.remote > 0)
    out["remote_edges"] = f.stats.message_edges;
  out["ms"] = f.steps.median() / ns_per_ms;
  out["min_ms"] = f.steps.least() / ns_per_ms;
  out["ns_per_op"] = f.ns_per_op();
  out["build_ms"] = f.build_ms;
  out["bytes_per_handle"] = f.bytes / static_cast<double>(f.handles());
  if (o.level != trace_level::off) {
    out["recorded_ms"] = f.recorded_steps.median() / ns_per_ms;
    out["events_per_step"] = f.events;
    out["ns_per_event"] = f.ns_per_event();
  }
  if (f.bounds) {
    out["work_ms"] = f.bounds->work_ns / ns_per_ms;
    out["critical_path_ms"] = f.bounds->critical_path_ns / ns_per_ms;
    out["ideal_ms"] = f.ideal_ns() / ns_per_ms;
    out["overlap"] = f.overlap();
    out["ideal_overlap"] = f.bounds->work_ns / f.ideal_ns();
    out["ops_without_cost"] = f.delays.unknown;
    out["types_without_cost"] = f.delays.unknown_types;
  }
  std::printf("%s\n", json_text(out).c_str());
}

/// "3 of 114 ops have no cost and take no time: mean, relu"
std::string unknown_text(const schedule_figures& f) {
  std::string types;
  for (const auto& type : f.delays.unknown_types)
    types += (types.empty() ? "" : ", ") + type;
  return std::to_string(f.delays.unknown) + " of "
         + std::to_string(f.stats.op_actors)
         + " ops have no cost and take no time: " + one_line(types);
}

void print_text(const schedule_options& o, const schedule_figures& f) {
  std::printf("%s on %s, strategy %s, %zu threads\n",
              one_line(o.network.program).c_str(), o.network.devices.c_str(),
              std::string(graph::to_string(f.strategy)).c_str(), f.workers);
  std::printf("%zu program ops, %zu op handles, %zu variable handles, %zu "
              "messages per step\n",
              f.ops, f.stats.op_actors, f.stats.variable_actors,
              f.stats.messages_per_step);
  if (o.late)
    std::printf("late devices\n");
  if (o.pending > 0 || o.late)
    std::printf("pending ops: %zu\n", f.stats.pending_ops);
  if (o.remote > 0)
    std::printf("remote edges: %zu\n", f.stats.message_edges);
  std::printf("step %.4f ms (least %.4f), %.1f ns per op and device\n",
              f.steps.median() / ns_per_ms, f.steps.least() / ns_per_ms,
              f.ns_per_op());
  std::printf("built in %.1f ms, %.0f bytes per handle\n", f.build_ms,
              f.bytes / static_cast<double>(f.handles()));
  if (o.level != trace_level::off)
    std::printf("recorded %.4f ms, %zu events, %.1f ns per event\n",
                f.recorded_steps.median() / ns_per_ms, f.events,
                f.ns_per_event());
  if (f.bounds)
    std::printf(
      "delays %.4f ms, critical path %.4f ms, at best %.4f ms; %.2f kernels "
      "at once, at best %.2f\n",
      f.bounds->work_ns / ns_per_ms, f.bounds->critical_path_ns / ns_per_ms,
      f.ideal_ns() / ns_per_ms, f.overlap(), f.bounds->work_ns / f.ideal_ns());
  if (f.delays.unknown > 0)
    std::printf("%s\n", unknown_text(f).c_str());
}

int run_schedule(const schedule_options& o) {
  const auto figures = measure(o);
  o.json ? print_json(o, figures) : print_text(o, figures);
  return 0;
}

} // namespace

void add_bench_schedule(CLI::App& bench, action& chosen) {
  auto o = std::make_shared<schedule_options>();
  auto& command = *bench.add_subcommand(
    "schedule", "cost of a step of a program when no kernel runs");
  add_program_argument(command, o->network);
  add_device_options(command, o->network);
  add_strategy_options(command, o->network);
  command
    .add_option("--threads", o->network.threads,
                "workers (default: one per core)")
    ->check(thread_count());
  command
    .add_option("--repeat", o->repeat,
                "number of samples; the median is reported")
    ->check(repeat_count())
    ->capture_default_str();
  command.add_option("--sample-ms", o->sample_ms, "minimum length of a sample")
    ->check(sample_length())
    ->capture_default_str();
  auto* pending =
    command
      .add_option("--pending", o->pending,
                  "treat this many ops, spread evenly, as pending launches; "
                  "they complete at once")
      ->check(not_negative());
  command
    .add_option("--remote", o->remote,
                "send CAF messages on this many edges, spread evenly")
    ->check(not_negative());
  auto* late =
    command
      .add_flag("--late", o->late,
                "devices only queue launches; their own threads run them "
                "later")
      ->excludes(pending);
  auto* delay =
    add_repeatable_option(command, "--delay", o->delays,
                          "make ops take time: TYPE=TIME,..., e.g. "
                          "conv2d=100us,*=1us, or a file of troupe trace costs "
                          "--json")
      ->check(not_empty());
  delay->excludes(late);
  command
    .add_option_function<std::string>(
      "--delay-kind",
      [o](const std::string& name) { o->delay = delay_kinds.at(name); },
      "how time passes: spin (default) keeps a core busy, sleep does "
      "not")
    ->check(not_empty())
    ->check(CLI::IsMember(delay_kinds))
    ->needs(delay);
  command
    .add_option_function<std::string>(
      "--level",
      [o](const std::string& name) { o->level = trace_levels.at(name); },
      "also measure the cost of recording at this level")
    ->check(not_empty())
    ->check(CLI::IsMember(trace_levels));
  add_output_options(command, o->json,
                     "troupe bench schedule resnet18 --devices cpu:2 --delay "
                     "conv2d=100us,*=2us");
  command.callback([o, &chosen] { chosen = [o] { return run_schedule(*o); }; });
}

} // namespace troupe::apps
