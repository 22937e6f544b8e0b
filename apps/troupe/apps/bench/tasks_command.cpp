// SPDX-License-Identifier: Apache-2.0
#include <troupe/apps/bench/bench_commands.hpp>
#include <troupe/apps/bench/sampling.hpp>
#include <troupe/apps/bench/task_engine.hpp>
#include <troupe/apps/common_options.hpp>
#include <troupe/apps/data/samples.hpp>
#include <troupe/apps/option_checks.hpp>
#include <troupe/apps/usage_error.hpp>
#include <troupe/base/clock.hpp>
#include <troupe/base/error.hpp>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <memory>
#include <string_view>

namespace troupe::apps {

namespace {

struct tasks_options {
  task_pattern pattern;
  int threads = 0;
  std::int64_t grain = 0;
  std::string engines = "troupe";
  int repeat = 7;
  double sample_ms = 20;
  bool metg = false;
  bool by_size = false;
  bool check = false;
  bool json = false;
};

/// An engine with its graph, ready to be measured.
class contestant {
public:
  contestant(const engine_entry& entry, const task_graph& graph,
             const tasks_options& o, std::int64_t grain)
    : name_(entry.name), work_(graph, grain, o.check) {
    const auto heap = heap_bytes();
    build_ns_ =
      time_of([&] { engine_ = entry.make(graph, work_, o.threads); }, 0);
    const auto description = engine_->description();
    build_ns_ -= description.ns;
    bytes_ = heap_bytes() - heap - description.bytes;
    pass(); // warm-up
  }

  const std::string& name() const { return name_; }
  double build_ms() const { return build_ns_ / ns_per_ms; }
  double bytes() const { return bytes_; }
  std::uint64_t messages() const { return engine_->messages(); }
  const samples& passes() const { return passes_; }
  double hops_per_task() const { return work_.hops_per_task(); }

  void sample(double at_least_ms) {
    passes_.add(time_of([this] { pass(); }, at_least_ms * ns_per_ms));
    if (auto wrong = work_.violations())
      throw error(errc::graph_invalid,
                  name_ + ": " + std::to_string(wrong)
                    + " tasks ran before a predecessor, or not at all");
  }

private:
  void pass() {
    work_.begin_pass();
    engine_->run_pass();
  }

  std::string name_;
  task_work work_;
  std::unique_ptr<task_engine> engine_;
  double build_ns_ = 0;
  double bytes_ = 0; // heap that the engine uses
  samples passes_;
};

/// Makes the task graph. An impossible grid is a wrong command line.
task_graph graph_of(const task_pattern& pattern) {
  try {
    return make_task_graph(pattern);
  } catch (const error& failure) {
    if (failure.code() == errc::invalid_argument)
      throw usage_error(failure.message());
    throw;
  }
}

/// Nanoseconds of a task's own work on one core.
double work_ns(std::int64_t grain) {
  if (grain == 0)
    return 0;
  samples s;
  for (int i = 0; i < 5; ++i)
    s.add(time_of([&] { task_work::compute(grain); }, ns_per_ms));
  return s.least();
}

/// Share of the workers' time that the tasks' own work takes.
double efficiency(const task_graph& graph, const tasks_options& o,
                  double own_ns, double pass_ns) {
  return own_ns * static_cast<double>(graph.tasks())
         / (pass_ns * static_cast<double>(o.threads));
}

std::vector<engine_entry> chosen_engines(const std::string& text) {
  const auto all = task_engines();
  std::vector<engine_entry> chosen;
  for (const auto& name : text == "all" ? std::vector<std::string>{}
                                        : distinct_names(text, "--engine")) {
    if (name == "all")
      throw usage_error("--engine: all stands for every engine and takes no "
                        "others beside it");
    const auto found = std::ranges::find(all, name, &engine_entry::name);
    if (found == all.end())
      throw usage_error("--engine: no such engine: " + name);
    if (!found->make)
      throw error(errc::unsupported_op, "this build has no engine " + name
                                          + ": its library was not found");
    chosen.push_back(*found);
  }
  if (text == "all")
    std::ranges::copy_if(
      all, std::back_inserter(chosen),
      [](const engine_entry& e) { return e.make != nullptr; });
  return chosen;
}

nlohmann::ordered_json describe(const tasks_options& o,
                                const task_graph& graph) {
  return {{"pattern", o.pattern.name}, {"width", o.pattern.width},
          {"steps", o.pattern.steps},  {"radix", o.pattern.radix},
          {"threads", o.threads},      {"grain", o.grain},
          {"tasks", graph.tasks()},    {"edges", graph.edges()}};
}

void print_rates(const tasks_options& o, const task_graph& graph,
                 const std::vector<std::unique_ptr<contestant>>& all) {
  const auto tasks = static_cast<double>(graph.tasks());
  const auto own = work_ns(o.grain);
  if (!o.json)
    std::printf("%s %lld x %lld, %zu tasks, %zu edges, %d threads, grain "
                "%lld (%.1f ns)\n%-16s %9s %9s %9s %9s %9s %9s %10s\n",
                o.pattern.name.c_str(), static_cast<long long>(o.pattern.width),
                static_cast<long long>(o.pattern.steps), graph.tasks(),
                graph.edges(), o.threads, static_cast<long long>(o.grain), own,
                "engine", "ns/task", "least", "quartiles", "", "build ms",
                "bytes", "efficiency");
  for (const auto& c : all) {
    const auto& p = c->passes();
    const auto share = efficiency(graph, o, own, p.median());
    if (o.json) {
      auto line = describe(o, graph);
      line["engine"] = c->name();
      line["messages"] = c->messages();
      line["build_ms"] = c->build_ms();
      line["bytes_per_task"] = c->bytes() / tasks;
      line["ms"] = p.median() / ns_per_ms;
      line["ns_per_task"] = p.median() / tasks;
      line["ns_per_task_min"] = p.least() / tasks;
      line["ns_per_task_low"] = p.quantile(0.25) / tasks;
      line["ns_per_task_high"] = p.quantile(0.75) / tasks;
      line["efficiency"] = share;
      if (o.check)
        line["hops_per_task"] = c->hops_per_task();
      std::printf("%s\n", line.dump().c_str());
    } else {
      std::printf("%-16s %9.1f %9.1f %9.1f %9.1f %9.1f %9.0f %10.3f",
                  c->name().c_str(), p.median() / tasks, p.least() / tasks,
                  p.quantile(0.25) / tasks, p.quantile(0.75) / tasks,
                  c->build_ms(), c->bytes() / tasks, share);
      if (o.check)
        std::printf("  %.2f hops", c->hops_per_task());
      std::printf("\n");
    }
  }
}

using contestants = std::vector<std::unique_ptr<contestant>>;

/// Samples all engines in turns, so that other load on the machine affects all
/// of them equally.
contestants sample_in_turns(const tasks_options& o, const task_graph& graph) {
  contestants all;
  for (const auto& entry : chosen_engines(o.engines))
    all.push_back(std::make_unique<contestant>(entry, graph, o, o.grain));
  for (int i = 0; i < o.repeat; ++i)
    for (auto& c : all)
      c->sample(o.sample_ms);
  return all;
}

int compare(const tasks_options& o) {
  const auto graph = graph_of(o.pattern);
  print_rates(o, graph, sample_in_turns(o, graph));
  return 0;
}

/// The median time of a pass over a graph with `tasks` tasks.
struct sized_pass {
  double tasks;
  double ns;
};

/// The fixed cost of a pass: the intercept of the line through the two smallest
/// graphs. The largest graph is left out: it may not fit into a cache, which
/// makes its tasks slower.
double fixed_ns(const std::vector<sized_pass>& passes) {
  const auto& a = passes[0];
  const auto& b = passes[1];
  return (a.ns * b.tasks - b.ns * a.tasks) / (b.tasks - a.tasks);
}

void print_by_size(const tasks_options& o, const std::string& engine,
                   const std::vector<sized_pass>& passes) {
  const auto fixed_us = fixed_ns(passes) / 1e3;
  if (o.json) {
    auto sizes = nlohmann::ordered_json::array();
    for (auto& p : passes)
      sizes.push_back({{"tasks", p.tasks}, {"ns_per_task", p.ns / p.tasks}});
    nlohmann::ordered_json line{
      {"pattern", o.pattern.name}, {"width", o.pattern.width},
      {"threads", o.threads},      {"grain", o.grain},
      {"engine", engine},          {"sizes", std::move(sizes)},
      {"fixed_us", fixed_us}};
    std::printf("%s\n", line.dump().c_str());
    return;
  }
  std::printf("%-16s", engine.c_str());
  for (auto& p : passes)
    std::printf(" %9.1f", p.ns / p.tasks);
  std::printf(" %9.2f\n", fixed_us);
}

/// Measures the pattern with a sixteenth, a quarter and all of its rows.
int compare_sizes(const tasks_options& o) {
  std::vector<std::vector<sized_pass>> passes; // by engine
  std::vector<std::string> names;
  std::string heading;
  for (auto part : {16, 4, 1}) {
    auto sized = o;
    sized.pattern.steps /= part;
    const auto graph = graph_of(sized.pattern);
    const auto tasks = static_cast<double>(graph.tasks());
    const auto all = sample_in_turns(sized, graph);
    passes.resize(all.size());
    names.clear();
    for (std::size_t i = 0; i < all.size(); ++i) {
      passes[i].push_back({tasks, all[i]->passes().median()});
      names.push_back(all[i]->name());
    }
    std::array<char, 16> count{};
    std::snprintf(count.data(), count.size(), " %9zu", graph.tasks());
    heading += count.data();
  }
  if (!o.json)
    std::printf("%s, width %lld, %d threads: ns per task by number of tasks\n"
                "%-16s%s %9s\n",
                o.pattern.name.c_str(), static_cast<long long>(o.pattern.width),
                o.threads, "engine", heading.c_str(), "us/pass");
  for (std::size_t i = 0; i < passes.size(); ++i)
    print_by_size(o, names[i], passes[i]);
  return 0;
}

/// Worker time per task at one grain, in nanoseconds, and the share of it that
/// is the tasks' own work.
struct grain_point {
  double granularity_ns = 0;
  double efficiency = 0;
};

grain_point measure(const engine_entry& entry, const task_graph& graph,
                    const tasks_options& o, std::int64_t grain) {
  contestant c{entry, graph, o, grain};
  for (int i = 0; i < o.repeat; ++i)
    c.sample(o.sample_ms);
  const auto pass = c.passes().median();
  return {pass * o.threads / static_cast<double>(graph.tasks()),
          efficiency(graph, o, work_ns(grain), pass)};
}

/// Shows on a terminal how far the search for an engine is. A search takes
/// minutes.
class search_progress {
public:
  ~search_progress() { print("\r\033[K"); }

  void update(std::string_view engine, std::int64_t grain, double efficiency) {
    std::array<char, 120> text{};
    std::snprintf(text.data(), text.size(),
                  "\r%.*s: grain %lld, efficiency %.2f\033[K",
                  static_cast<int>(engine.size()), engine.data(),
                  static_cast<long long>(grain), efficiency);
    print(text.data());
  }

private:
  void print(const char* text) const {
    if (terminal_)
      std::fputs(text, stderr);
  }

  bool terminal_ = isatty(STDERR_FILENO) == 1;
};

/// The smallest granularity at which half of the time is the tasks' own work.
/// It is interpolated between the last grain that reaches this share and the
/// first that does not.
double find_metg(const engine_entry& entry, const task_graph& graph,
                 const tasks_options& o) {
  constexpr std::int64_t coarsest = 1 << 16;
  grain_point above{};
  search_progress progress;
  for (auto grain = coarsest; grain >= 1; grain /= 2) {
    const auto here = measure(entry, graph, o, grain);
    progress.update(entry.name, grain, here.efficiency);
    if (here.efficiency < 0.5) {
      if (above.granularity_ns == 0)
        return here.granularity_ns; // never reached
      const auto t =
        (0.5 - here.efficiency) / (above.efficiency - here.efficiency);
      return std::min(above.granularity_ns,
                      here.granularity_ns
                        + t * (above.granularity_ns - here.granularity_ns));
    }
    above = here;
  }
  return above.granularity_ns;
}

int print_metg(const tasks_options& o) {
  const auto graph = graph_of(o.pattern);
  for (const auto& entry : chosen_engines(o.engines)) {
    const auto us = find_metg(entry, graph, o) / 1e3;
    if (o.json) {
      auto line = describe(o, graph);
      line.erase("grain");
      line["engine"] = entry.name;
      line["metg_us"] = us;
      std::printf("%s\n", line.dump().c_str());
    } else {
      std::printf("%-16s METG(50 %%) %.3f us\n",
                  std::string(entry.name).c_str(), us);
    }
  }
  return 0;
}

int run_tasks(tasks_options o) {
  o.threads = choose_workers(o.threads);
  if (o.by_size && o.pattern.steps < 16)
    throw usage_error("--by-size needs 16 --steps or more");
  if (o.metg)
    return print_metg(o);
  return o.by_size ? compare_sizes(o) : compare(o);
}

std::string engine_help() {
  std::string text = "all, or some of:";
  for (const auto& e : task_engines())
    text += "\n  " + std::string(e.name) + ": " + std::string(e.what)
            + (e.make ? "" : " (not in this build)");
  return text;
}

} // namespace

void add_bench_tasks(CLI::App& bench, action& chosen) {
  auto o = std::make_shared<tasks_options>();
  auto& command = *bench.add_subcommand(
    "tasks", "cost of a task in graphs of small tasks (Task Bench)");
  std::vector<std::string> patterns(task_patterns().begin(),
                                    task_patterns().end());
  command
    .add_option("--pattern", o->pattern.name, "dependence pattern of the tasks")
    ->check(not_empty())
    ->check(CLI::IsMember(patterns))
    ->capture_default_str();
  command.add_option("--width", o->pattern.width, "tasks per row")
    ->check(positive())
    ->capture_default_str();
  command.add_option("--steps", o->pattern.steps, "rows of tasks")
    ->check(positive())
    ->capture_default_str();
  command
    .add_option("--radix", o->pattern.radix,
                "dependencies per task in nearest, spread and random_nearest")
    ->check(not_negative())
    ->capture_default_str();
  command
    .add_option("--threads", o->threads, "workers (default: one per core)")
    ->check(thread_count());
  command
    .add_option("--grain", o->grain,
                "work per task, in units of 128 floating-point operations")
    ->check(not_negative(1e9))
    ->capture_default_str();
  add_list_option(command, "--engine", o->engines, engine_help())
    ->check(name_list());
  command.add_option("--repeat", o->repeat, "samples per engine, in turns")
    ->check(repeat_count())
    ->capture_default_str();
  command.add_option("--sample-ms", o->sample_ms, "minimum length of a sample")
    ->check(sample_length())
    ->capture_default_str();
  auto* metg =
    command.add_flag("--metg", o->metg,
                     "search for the granularity at which efficiency is 50 %");
  command
    .add_flag("--by-size", o->by_size,
              "also run a sixteenth and a quarter of the steps, to separate "
              "the fixed cost of a pass (us/pass) from that of its tasks")
    ->excludes(metg);
  command.add_flag("--check", o->check,
                   "make each task check that its predecessors have run, and "
                   "count those that another thread ran (hops)");
  add_output_options(command, o->json,
                     "troupe bench tasks --pattern fft --threads 2 --engine "
                     "troupe,onetbb,ready_queue");
  command.callback([o, &chosen] { chosen = [o] { return run_tasks(*o); }; });
}

} // namespace troupe::apps
