// SPDX-License-Identifier: Apache-2.0
#include <troupe/apps/common_options.hpp>
#include <troupe/apps/option_checks.hpp>
#include <troupe/apps/results/json_text.hpp>
#include <troupe/apps/trace/top_rows.hpp>
#include <troupe/apps/trace/trace_commands.hpp>
#include <troupe/apps/trace/traced_run.hpp>
#include <troupe/apps/usage_error.hpp>
#include <troupe/base/error.hpp>
#include <troupe/base/quoted_name.hpp>
#include <troupe/trace/analysis/critical_path.hpp>
#include <troupe/trace/analysis/replay.hpp>
#include <troupe/trace/analysis/statistics.hpp>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

namespace troupe::apps {

namespace {

using json = nlohmann::ordered_json;

struct path_options {
  std::vector<std::string> files;
  std::optional<std::string> step; ///< a whole number
  std::string what_if;
  std::optional<std::size_t> top;
  bool json = false;
};

/// Step times of a replay, in nanoseconds.
struct what_if_times {
  std::size_t steps = 0;
  double measured = 0, unchanged = 0, changed = 0;
  /// With the run's own costs of the ops that the file has; 0: no file of costs
  /// is asked about.
  double own_costs = 0;
  std::size_t ops_without_cost = 0; ///< in the file
};

/// Other costs than the measured ones.
struct other_costs {
  std::optional<trace::cost_table> table;
  std::vector<trace::cost_change> changes;
  bool empty() const { return !table && changes.empty(); }
};

trace::cost_change read_change(const std::string& entry) {
  try {
    return trace::parse_cost_change(entry);
  } catch (const error& e) {
    throw usage_error("--what-if " + e.message());
  }
}

trace::cost_table read_costs(const std::string& file) {
  try {
    if (names_file(file))
      return trace::cost_table::read(file);
  } catch (const error& e) {
    throw error(e.code(), "--what-if: " + e.message());
  }
  throw usage_error("--what-if: neither TYPE=x0.5, TYPE=+2ms, TYPE=-2ms or "
                    "TYPE=100us nor a file of costs: "
                    + quoted_name(file));
}

/// An entry without "=" is the name of a file of costs.
void add_entry(const std::string& entry, other_costs& to) {
  if (entry.find('=') != std::string::npos) {
    to.changes.push_back(read_change(entry));
    return;
  }
  if (to.table)
    throw usage_error("--what-if: " + quoted_name(entry)
                      + ": costs of one file only");
  to.table = read_costs(entry);
}

other_costs read_changes(const std::string& list) {
  other_costs costs;
  if (list.empty())
    return costs;
  for (const auto& entry : split_list(list)) {
    if (entry.empty())
      throw usage_error("--what-if: an entry of " + quoted_name(list)
                        + " is empty");
    add_entry(entry, costs);
  }
  return costs;
}

const trace::step_times& find_step(const traced_run& run,
                                   const path_options& options) {
  if (options.step)
    return run.step(*options.step);
  if (const auto* median = trace::median_step(run.timeline()))
    return *median;
  throw run.refusal(run.why_no_step());
}

/// The time of the chosen step, or the mean of all: of steps that are in flight
/// together, one can end right after the other, so single times say little.
double time_of_interest(const std::vector<double>& times,
                        const path_options& options) {
  return options.step ? times.back() : trace::mean(times);
}

trace::replayed_steps replay_with(const traced_run& run,
                                  const trace::step_range& range,
                                  const other_costs& costs) {
  try {
    return trace::replay(run.timeline(), run.graph(), range, costs.changes,
                         costs.table ? &*costs.table : nullptr);
  } catch (const error& e) {
    const auto text = "--what-if: " + e.message();
    if (e.code() == errc::not_found) // no such ops
      throw usage_error(text);
    throw error(e.code(), text);
  }
}

/// The run's own costs of the ops that a file has, and how many it lacks.
std::pair<trace::cost_table, std::size_t>
own_costs(const traced_run& run, const trace::cost_table& file) {
  const auto& graph = run.parts().front().graph;
  std::set<trace::cost_key> in_file;
  std::size_t missing = 0;
  for (handle_id op = 0; op < graph.handles.size(); ++op) {
    if (!graph.handles[op].is_op)
      continue;
    if (file.find(graph, op))
      in_file.insert(trace::cost_key_of(graph, op));
    else
      ++missing;
  }
  std::vector<trace::op_cost> rows;
  const auto all =
    trace::cost_table::measure(run.parts(), run.timeline(), run.graph());
  for (const auto& row : all.rows())
    if (in_file.contains(row.key))
      rows.push_back(row);
  return {trace::cost_table{std::move(rows)}, missing};
}

/// @param chosen the step that is explained
what_if_times predict(const traced_run& run, const trace::step_times& chosen,
                      const path_options& options, const other_costs& costs) {
  const auto& all = run.timeline();
  const auto range = options.step ? trace::steps_to_replay(all, chosen.step)
                                  : trace::steps_to_replay(all);
  const auto same = replay_with(run, range, {});
  const auto other = replay_with(run, range, costs);
  what_if_times times{same.steps.size(),
                      time_of_interest(same.measured_ns, options),
                      time_of_interest(same.predicted_ns, options),
                      time_of_interest(other.predicted_ns, options)};
  if (costs.table) {
    other_costs own;
    std::tie(own.table, times.ops_without_cost) = own_costs(run, *costs.table);
    times.own_costs =
      time_of_interest(replay_with(run, range, own).predicted_ns, options);
  }
  return times;
}

json path_json(const traced_run& run, const trace::critical_path& path) {
  json parts = json::array();
  for (const auto& p : path.parts)
    parts.push_back({{"kind", to_string(p.kind)},
                     {"op", p.op == no_handle ? "" : run.name_of(p.op)},
                     {"process", p.process},
                     {"worker", p.worker},
                     {"begin_ns", p.begin},
                     {"ns", p.end - p.begin}});
  return {{"step", path.step}, {"ns", path.total()}, {"path", parts}};
}

top_rows choose_parts(const trace::critical_path& path,
                      std::optional<std::size_t> top) {
  std::vector<double> times;
  for (const auto& p : path.parts)
    times.push_back(static_cast<double>(p.end - p.begin));
  return choose_rows(times, top);
}

void print_path(const traced_run& run, const trace::critical_path& path,
                const trace::step_times& step, const top_rows& rows) {
  std::printf("step %u: %s\n", path.step,
              time_text(static_cast<double>(path.total())).c_str());
  std::printf("%10s %10s  %-20s %-7s %s\n", "from", "time", "what", "worker",
              "op");
  for (std::size_t i = 0; i < path.parts.size(); ++i) {
    if (!rows.shown[i])
      continue;
    const auto& p = path.parts[i];
    const auto from = static_cast<double>(p.begin - step.after);
    const auto ns = static_cast<double>(p.end - p.begin);
    const auto place =
      p.op == no_handle ? std::string{}
      : run.parts().size() > 1
        ? std::to_string(p.process) + "/" + std::to_string(p.worker)
        : std::to_string(p.worker);
    std::printf("%10s %10s  %-20s %-7s %s\n", time_text(from).c_str(),
                time_text(ns).c_str(), std::string{to_string(p.kind)}.c_str(),
                place.c_str(),
                p.op == no_handle ? "" : one_line(run.name_of(p.op)).c_str());
  }
  std::printf("%s", rows.rest().c_str());
  const auto kinds = path.by_kind();
  for (std::size_t k = 0; k < kinds.size(); ++k)
    std::printf(
      "%-20s %10s %s\n",
      std::string{to_string(static_cast<trace::path_kind>(k))}.c_str(),
      time_text(static_cast<double>(kinds[k])).c_str(),
      percent_text(static_cast<double>(kinds[k])
                   / std::max(1.0, static_cast<double>(path.total())))
        .c_str());
}

/// @param is_of_one the times are of the step that `--step` names
void print_prediction(const what_if_times& times, const std::string& what,
                      bool is_of_one) {
  std::printf("step time measured %s, replayed %s (%+.1f %%)",
              time_text(times.measured).c_str(),
              time_text(times.unchanged).c_str(),
              100 * (times.unchanged / times.measured - 1));
  if (!what.empty())
    std::printf(", with %s %s (%+.1f %%)", one_line(what).c_str(),
                time_text(times.changed).c_str(),
                100 * (times.changed / times.measured - 1));
  if (times.steps > 1)
    std::printf(is_of_one ? ", the last of %zu replayed steps"
                          : ", mean of %zu steps",
                times.steps);
  std::printf("\n");
  if (times.ops_without_cost > 0)
    std::printf("ops that the file lacks, which keep their times: %zu\n",
                times.ops_without_cost);
  if (times.own_costs > 0)
    std::printf("costs are medians: with the run's own ones the step takes %s "
                "(%+.1f %%), and %s is %+.1f %% against that\n",
                time_text(times.own_costs).c_str(),
                100 * (times.own_costs / times.measured - 1),
                one_line(what).c_str(),
                100 * (times.changed / times.own_costs - 1));
}

int run_critical_path(const path_options& options) {
  const auto costs = read_changes(options.what_if);
  const traced_run run{options.files};
  warn_of_missing_ranks(run.parts());
  run.require_ops();
  const auto& step = find_step(run, options);
  const auto path =
    trace::find_critical_path(run.timeline(), run.graph(), step);
  const auto times = predict(run, step, options, costs);
  if (options.json) {
    auto out = path_json(run, path);
    out["measured_ns"] = times.measured;
    out["replayed_ns"] = times.unchanged;
    if (!costs.empty())
      out["predicted_ns"] = times.changed;
    if (times.own_costs > 0) {
      out["own_costs_ns"] = times.own_costs;
      out["ops_without_cost"] = times.ops_without_cost;
    }
    std::printf("%s\n", json_text(out).c_str());
    return 0;
  }
  print_path(run, path, step, choose_parts(path, options.top));
  print_prediction(times, options.what_if, options.step.has_value());
  return 0;
}

} // namespace

void add_trace_critical_path(CLI::App& trace, action& chosen) {
  auto options = std::make_shared<path_options>();
  auto& command = *trace.add_subcommand(
    "critical-path", "why a step took so long, and what if ops were faster");
  add_trace_files(command, options->files);
  command
    .add_option("--step", options->step, "a step (default: the median one)")
    ->check(whole_number());
  add_list_option(
    command, "--what-if", options->what_if,
    "predict the step time if ops took another time: "
    "TYPE=x0.5, TYPE=+2ms, TYPE=100us, ...; instead of a type the "
    "name of one op, as it is printed, or * for all; or a file "
    "of troupe trace costs --json")
    ->check(not_empty());
  add_top_option(command, options->top);
  add_output_options(command, options->json,
                     "troupe trace critical-path run.trt --what-if "
                     "conv2d=x0.5");
  command.callback([options, &chosen] {
    chosen = [options] { return run_critical_path(*options); };
  });
}

} // namespace troupe::apps
