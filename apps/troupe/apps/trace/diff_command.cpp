// SPDX-License-Identifier: Apache-2.0
#include <troupe/apps/common_options.hpp>
#include <troupe/apps/option_checks.hpp>
#include <troupe/apps/printed.hpp>
#include <troupe/apps/results/json_text.hpp>
#include <troupe/apps/trace/trace_commands.hpp>
#include <troupe/apps/trace/traced_run.hpp>
#include <troupe/base/quoted_name.hpp>
#include <troupe/trace/analysis/trace_diff.hpp>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>

#include <algorithm>
#include <cstdio>
#include <memory>

namespace troupe::apps {

namespace {

using json = nlohmann::ordered_json;

json diff_json(const trace::diff_row& row) {
  const auto side = [](const trace::spread& s, std::size_t steps) {
    return json{{"steps", steps},
                {"ns", s.median},
                {"ns_quarter", s.quarter},
                {"ns_three_quarters", s.three_quarters}};
  };
  return {{"name", row.name},
          {"a", side(row.a_ns, row.steps_a)},
          {"b", side(row.b_ns, row.steps_b)},
          {"ratio", row.ratio()},
          {"p", row.p},
          {"difference", to_string(row.found)}};
}

std::string side_text(const trace::spread& s, std::size_t steps) {
  if (steps == 0)
    return "-";
  return time_text(s.median) + " (" + time_text(s.quarter) + " .. "
         + time_text(s.three_quarters) + ")";
}

void print_diff_row(const trace::diff_row& row, int width) {
  std::printf("%-*s %-38s %-38s %7s  %s\n", width, one_line(row.name).c_str(),
              side_text(row.a_ns, row.steps_a).c_str(),
              side_text(row.b_ns, row.steps_b).c_str(),
              row.ratio() > 0 ? printed("%.3f", row.ratio()).c_str() : "-",
              std::string{to_string(row.found)}.c_str());
}

/// Of the column of names: the longest one fits.
int width_of_names(const trace::trace_difference& found) {
  std::size_t width = 32;
  for (const auto& row : found.rows)
    width = std::max(width, one_line(row.name).size());
  return static_cast<int>(width);
}

/// The rows, and how many of them differ.
void print_diff_rows(const trace::trace_difference& found, int width,
                     const char* rows_are) {
  for (const auto& row : found.rows)
    print_diff_row(row, width);
  const auto count = [&](trace::difference d) {
    return std::ranges::count(found.rows, d, &trace::diff_row::found);
  };
  const auto differ =
    count(trace::difference::faster) + count(trace::difference::slower);
  const auto unknown = count(trace::difference::unknown);
  const auto only_a = count(trace::difference::only_a);
  const auto only_b = count(trace::difference::only_b);
  if (differ == 0)
    std::printf("no difference beyond the spread of the steps");
  else
    std::printf("%zd of %zu differ beyond the spread of the steps", differ,
                found.rows.size());
  if (unknown > 0)
    std::printf(", %zd not comparable: fewer than %zu steps in A or B", unknown,
                trace::least_steps);
  if (only_a + only_b > 0)
    std::printf(", %zd %s only in A, %zd only in B", only_a, rows_are, only_b);
  std::printf("\n");
}

/// Steps that count are fewer than those of the run.
std::string why_not_comparable(const trace::trace_difference& found,
                               const trace::timeline& a,
                               const trace::timeline& b) {
  return printed(
    "step time not comparable: %zu values are needed, A has %zu of "
    "%zu steps, B %zu of %zu; the first two do not count, and "
    "steps in flight together give one\n",
    trace::least_steps, found.step.steps_a, a.steps().size(),
    found.step.steps_b, b.steps().size());
}

void print_diff_text(const trace::trace_difference& found,
                     const trace::timeline& a, const trace::timeline& b,
                     const char* rows_are) {
  const auto width = width_of_names(found);
  std::printf("%-*s %-38s %-38s %7s\n", width, "per step",
              "A: median (quartiles)", "B: median (quartiles)", "B / A");
  print_diff_row(found.step, width);
  if (!found.rows.empty())
    print_diff_rows(found, width, rows_are);
  if (found.step.found == trace::difference::unknown)
    std::printf("%s", why_not_comparable(found, a, b).c_str());
}

struct diff_options {
  std::string a, b;
  std::string by = "type";
  bool json = false;
};

/// Ranks of a job run ops of different devices, and wait for each other.
void tell_of_ranks(const trace::run_info& a, const trace::run_info& b) {
  if (a.process != b.process)
    std::fprintf(stderr,
                 "note: A is of rank %zu of %zu, B of rank %zu of %zu; compare "
                 "the same rank of two runs\n",
                 a.process, a.processes, b.process, b.processes);
}

/// The times of two programs differ for more reasons than one.
void tell_of_programs(const traced_run& a, const traced_run& b,
                      const trace::trace_difference& found) {
  if (found.kinds_only_a + found.kinds_only_b == 0)
    return;
  const auto& in_a = a.parts().front().run.command;
  const auto& in_b = b.parts().front().run.command;
  std::fprintf(
    stderr,
    "note: A (%s) and B (%s) are different programs: by type, "
    "attributes and shapes, %zu kinds of ops are only in A, %zu only "
    "in B\n",
    one_line(in_a).c_str(), one_line(in_b).c_str(), found.kinds_only_a,
    found.kinds_only_b);
}

/// Throws if there is nothing to compare, and tells if it is step times alone.
void require_comparable(const traced_run& a, const traced_run& b) {
  a.require_steps();
  b.require_steps();
  if (a.has_ops() && b.has_ops())
    return;
  std::fprintf(stderr,
               "note: %s not say when ops ran: only step times are compared\n",
               a.has_ops()   ? "B does"
               : b.has_ops() ? "A does"
                             : "A and B do");
}

int run_diff(const diff_options& options) {
  const traced_run a{{options.a}};
  const traced_run b{{options.b}};
  require_comparable(a, b);
  tell_of_ranks(a.parts().front().run, b.parts().front().run);
  const auto by =
    options.by == "op" ? trace::diff_by::op : trace::diff_by::type;
  auto found =
    trace::compare(a.timeline(), a.graph(), b.timeline(), b.graph(), by);
  if (!a.has_ops() || !b.has_ops())
    found.rows.clear();
  tell_of_programs(a, b, found);
  if (!options.json) {
    print_diff_text(found, a.timeline(), b.timeline(),
                    by == trace::diff_by::op ? "ops" : "types");
    return 0;
  }
  std::printf("%s\n", json_text(diff_json(found.step)).c_str());
  for (const auto& row : found.rows)
    std::printf("%s\n", json_text(diff_json(row)).c_str());
  return 0;
}

} // namespace

void add_trace_diff(CLI::App& trace, action& chosen) {
  auto options = std::make_shared<diff_options>();
  auto& command =
    *trace.add_subcommand("diff", "compares two runs, and tells noise apart");
  command.add_option("A.trt", options->a, "the run before")
    ->required()
    ->check(not_empty());
  command.add_option("B.trt", options->b, "the run after")
    ->required()
    ->check(not_empty());
  command
    .add_option("--by", options->by,
                "compare the ops of a type together (default), or each op")
    ->check(CLI::IsMember({"op", "type"}));
  add_output_options(command, options->json,
                     "troupe trace diff before.trt after.trt");
  command.callback(
    [options, &chosen] { chosen = [options] { return run_diff(*options); }; });
}

} // namespace troupe::apps
