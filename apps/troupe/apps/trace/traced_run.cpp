// SPDX-License-Identifier: Apache-2.0
#include <troupe/apps/trace/traced_run.hpp>

#include <troupe/apps/option_checks.hpp>
#include <troupe/apps/printed.hpp>
#include <troupe/apps/usage_error.hpp>
#include <troupe/base/clock.hpp>
#include <troupe/base/error.hpp>
#include <troupe/base/quoted_name.hpp>
#include <troupe/trace/analysis/failed_steps.hpp>
#include <troupe/trace/trace_reader.hpp>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <system_error>

namespace troupe::apps {

std::vector<trace::process_trace>
read_traces(const std::vector<std::string>& files, without_graph is) {
  std::vector<trace::process_trace> parts;
  for (const auto& file : files) {
    parts.push_back(trace::read_trace(file));
    if (parts.back().graph.handles.empty()) {
      const error why{errc::bad_file,
                      file
                        + ": ends before the graph is known: nothing was "
                          "recorded"};
      if (is == without_graph::refused)
        throw why;
      std::fprintf(stderr, "troupe: %s\n", one_line(why.message()).c_str());
      continue;
    }
    if (const auto bytes = parts.back().unread_bytes; bytes > 0)
      std::fprintf(stderr,
                   "troupe: %s: cut or damaged, the last %llu bytes are "
                   "not read\n",
                   one_line(file).c_str(),
                   static_cast<unsigned long long>(bytes));
  }
  return parts;
}

std::string clocks_text(const trace::clock_merge& found) {
  if (found.contradiction_ns <= 0)
    return "";
  return "the processes' clocks contradict each other by up to "
         + time_text(static_cast<double>(found.contradiction_ns))
         + ": times of different processes cannot be compared";
}

void warn_of_clocks(const trace::clock_merge& found) {
  if (const auto text = clocks_text(found); !text.empty())
    std::fprintf(stderr, "troupe: %s\n", text.c_str());
}

std::string missing_ranks_text(const std::vector<trace::process_trace>& parts) {
  const auto ranks = parts.front().run.processes;
  if (parts.size() >= ranks)
    return "";
  const auto missing = ranks - parts.size();
  return std::to_string(missing) + (missing == 1 ? " file" : " files") + " of "
         + std::to_string(ranks) + " ranks " + (missing == 1 ? "is" : "are")
         + " missing: what other ranks did is unknown";
}

void warn_of_missing_ranks(const std::vector<trace::process_trace>& parts) {
  if (const auto text = missing_ranks_text(parts); !text.empty())
    std::fprintf(stderr, "troupe: %s\n", text.c_str());
}

traced_run::traced_run(const std::vector<std::string>& files, without_graph is)
  : files_(files), parts_(read_traces(files, is)),
    clocks_(trace::merge_clocks(parts_)), graph_(parts_.front().graph),
    timeline_(parts_) {
  warn_of_clocks(clocks_);
}

error traced_run::refusal(const std::string& why) const {
  return {errc::invalid_argument, files_.front() + ": " + why};
}

std::string traced_run::why_no_step() const {
  return trace::failed_steps(parts_).empty()
           ? "ends before a step has ended"
           : "all its steps failed or were cancelled: summary tells how";
}

void traced_run::require_steps() const {
  if (timeline_.steps().empty())
    throw refusal(why_no_step());
}

void traced_run::require_ops() const {
  const auto has_level =
    has_ops() || parts_.front().run.level >= trace_level::ops;
  if (has_level)
    require_steps();
  if (!has_ops())
    throw refusal("does not say when ops ran; record with --trace-level ops or "
                  "messages, or a flight recorder with --flight-recorder ops");
}

const trace::step_times& traced_run::step(const std::string& text) const {
  const auto refuse = [&](const std::string& why) {
    throw usage_error(files_.front() + ": " + why);
  };
  std::uint32_t number = 0;
  const auto is_number =
    std::from_chars(text.data(), text.data() + text.size(), number).ec
    == std::errc{};
  if (is_number && trace::failed_steps(parts_).contains(number))
    refuse("step " + text + " failed or was cancelled: summary tells how");
  const auto steps = timeline_.steps();
  if (steps.empty())
    throw refusal(why_no_step());
  const auto found =
    std::ranges::lower_bound(steps, number, {}, &trace::step_times::step);
  if (!is_number || found == steps.end() || found->step != number)
    refuse("--step: no step " + text + "; the trace has steps "
           + std::to_string(steps.front().step) + " to "
           + std::to_string(steps.back().step));
  return *found;
}

void add_trace_files(CLI::App& command, std::vector<std::string>& files) {
  command
    .add_option("F.trt", files,
                "what train --trace wrote; of a job the files of all ranks")
    ->check(not_empty())
    ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
    ->required();
}

std::string time_text(double ns) {
  if (ns < ns_per_us)
    return printed("%.0f ns", ns);
  if (ns < ns_per_ms)
    return printed("%.1f us", ns / ns_per_us);
  constexpr double ns_per_s = 1e9;
  return ns < ns_per_s ? printed("%.2f ms", ns / ns_per_ms)
                       : printed("%.2f s", ns / ns_per_s);
}

std::string percent_text(double share) {
  return printed("%.1f %%", 100 * share);
}

std::string bytes_text(double bytes) {
  constexpr double kib = 1024;
  if (bytes < kib)
    return printed("%.0f B", bytes);
  if (bytes < kib * kib)
    return printed("%.1f KiB", bytes / kib);
  return printed("%.1f MiB", bytes / kib / kib);
}

} // namespace troupe::apps
